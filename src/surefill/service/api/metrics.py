"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.security import requires
from surefill.service.service import Service

router = APIRouter(tags=["service"], responses=documented(*ALWAYS))


class Metrics:
    """What is counted as requests come, and what is read off the service when somebody asks."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("surefill_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "surefill_request_seconds", "Time to answer.", ("method", "route"), registry=self.registry
        )
        self.stored = Counter(
            "surefill_observations_stored", "Observations stored.", ("data_set",), registry=self.registry
        )
        self.registry.register(_State(service))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; those to no known address are one kind."""
        self.requests.labels(method, route or "none", str(status)).inc()
        self.seconds.labels(method, route or "none").observe(seconds)


class _State(Collector):
    """The state of the service at the moment it is asked."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """One gauge for each figure."""
        if not self._service.ready:
            return
        waiting = "Observations that wait to be stored."
        yield GaugeMetricFamily("surefill_observations_pending", waiting, self._service.writer.pending)
        names = {
            "surefill_observations": "Observations learnt.",
            "surefill_observations_behind": "Observations that the model in use has not seen.",
            "surefill_model": "Number of the model in use.",
            "surefill_promised": "1 where the model in use promises something.",
            "surefill_stream_rmse": "Error of the stream, each observation predicted before it was learnt.",
        }
        gauges = {name: GaugeMetricFamily(name, about, labels=["data_set"]) for name, about in names.items()}
        for data_set in list(self._service.data_sets.values()):
            progress, model = data_set.progress, data_set.in_use.model
            seen = 0 if model is None else model.record.sequence
            figures = (
                progress.sequence,
                progress.sequence - seen,
                0 if model is None else model.record.number,
                float(model is not None and model.guarantee.promised),
                progress.metrics.rmse,
            )
            for gauge, figure in zip(gauges.values(), figures, strict=True):
                gauge.add_metric([data_set.name], figure)
        yield from gauges.values()


@router.get(
    "/metrics",
    dependencies=[Depends(requires("read"))],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures as text."}},
)
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    text = await request.app.state.threads.run(generate_latest, request.app.state.metrics.registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
