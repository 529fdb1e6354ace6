"""What the page shows: documents, and parts of them that are fetched again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from surefill.service.answers import Prediction, predict
from surefill.service.api import jobs as jobs_api
from surefill.service.api import promise as promise_api
from surefill.service.api import status as status_api
from surefill.service.api import suggestions as suggestions_api
from surefill.service.api.found import LabelQuery, TheDataSet, TheService, TheThreads
from surefill.service.api.schemas import ModelInUse
from surefill.service.api.suggestions import StrategyName
from surefill.service.data_set import DataSet
from surefill.service.page import actions, words
from surefill.service.page.activity import watching
from surefill.service.page.rendering import STATIC, render
from surefill.service.page.rows import RowView, all_rows, find_rows, view_row
from surefill.service.page.sessions import COOKIE, SESSION_SECONDS, SessionCookie, Sessions, page_requires, sign_in
from surefill.service.refit import report_name
from surefill.service.service import Service

router = APIRouter(include_in_schema=False, lifespan=watching)
router.include_router(actions.router)

READ = Depends(page_requires("read"))
READ_DOCUMENT = Depends(page_requires("read", document=True))
SUGGESTED = 10
"""Cells to ask next that are shown: as many as a person may want to ask for at one sitting."""

MATCHES = 12
"""Rows shown as somebody types: one screen of a phone."""

MODELS_SHOWN, JOBS_SHOWN = 200, 8


@router.get("/", dependencies=[READ_DOCUMENT])
async def home(request: Request, service: TheService, threads: TheThreads) -> HTMLResponse:
    """All data sets, and a form to make one."""
    return render("home.html", **await _listed(request, service, threads), **_who(request))


@router.get("/page/list", dependencies=[READ])
async def data_sets(request: Request, service: TheService, threads: TheThreads) -> HTMLResponse:
    """The list of data sets, as of now."""
    return render("list.html", **await _listed(request, service, threads))


@router.get("/page/data-sets/{name}", dependencies=[READ_DOCUMENT])
async def data_set_page(
    request: Request, service: TheService, threads: TheThreads, name: str, row: str | None = None
) -> HTMLResponse:
    """One data set: what is promised, a search for rows, what to ask, what goes on."""
    data_set = service.data_sets.get(name)
    if data_set is None:
        return render("absent.html", 404, name=name, **_who(request))
    view = None if row is None else await threads.run(_view, data_set, row)
    shown = await _live(request, service, threads, data_set) | await _promised(service, threads, data_set)
    shown |= await _jobs(service, threads, data_set) | _row_context(view)
    labels = await threads.run(all_rows, data_set.in_use)
    return render("data_set.html", **shown, matches=labels[:MATCHES], asked="", **_who(request))


@router.get("/page/data-sets/{name}/live", dependencies=[READ])
async def live(request: Request, service: TheService, threads: TheThreads, data_set: TheDataSet) -> HTMLResponse:
    """The figures that change all the time."""
    return render("live.html", **await _live(request, service, threads, data_set))


@router.get("/page/data-sets/{name}/promise", dependencies=[READ])
async def promised(service: TheService, threads: TheThreads, data_set: TheDataSet) -> HTMLResponse:
    """What the model in use promises, and the models before it."""
    return render("promise.html", **await _promised(service, threads, data_set))


@router.get("/page/data-sets/{name}/jobs", dependencies=[READ])
async def latest_jobs(service: TheService, threads: TheThreads, data_set: TheDataSet) -> HTMLResponse:
    """The latest jobs."""
    return render("jobs.html", **await _jobs(service, threads, data_set))


@router.get("/page/data-sets/{name}/rows", dependencies=[READ])
async def rows(
    threads: TheThreads, data_set: TheDataSet, row: Annotated[str, Query(max_length=200)] = ""
) -> HTMLResponse:
    """Rows whose label contains what was typed."""
    matches = await threads.run(lambda: find_rows(all_rows(data_set.in_use), row, MATCHES))
    return render("matches.html", name=data_set.name, matches=matches, asked=row.strip())


@router.get("/page/data-sets/{name}/row", dependencies=[READ])
async def one_row(
    threads: TheThreads, data_set: TheDataSet, row: LabelQuery, col: Annotated[str, Query(max_length=200)] = ""
) -> HTMLResponse:
    """What is recommended for a row, and what is refused and why; what is said of one of its columns if asked for."""
    view = await threads.run(_view, data_set, row, col.strip())
    return render("row.html", name=data_set.name, **_row_context(view))


@router.get("/page/data-sets/{name}/suggestions", dependencies=[READ])
async def suggested(
    request: Request,
    threads: TheThreads,
    data_set: TheDataSet,
    strategy: StrategyName = "coverage",
    row: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """What to ask next."""
    found = await suggestions_api.suggest_cells(threads, data_set, SUGGESTED, strategy, row.strip() or None)
    bounds = data_set.options.bounds
    return render("suggestions.html", name=data_set.name, found=found, bounds=bounds, row=row, **_who(request))


@router.get("/page/data-sets/{name}/report", dependencies=[READ])
async def report(threads: TheThreads, data_set: TheDataSet) -> Response:
    """The report about the model in use, for a frame of this page or a tab of its own."""
    return await promise_api.report(threads, data_set)


@router.get("/page/static/{file}")
async def static(file: str) -> Response:
    """A style or script; only what was found when the service started has an address."""
    if file not in STATIC:
        raise HTTPException(404, "there is nothing at this address.")
    content, kind = STATIC[file]
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


@router.get("/page/sign-in")
async def sign_in_form() -> HTMLResponse:
    """Asks for a token."""
    return render("sign_in.html", problem="", scope=None, signed_in=False)


@router.post("/page/sign-in")
async def signed_in(request: Request, service: TheService) -> Response:
    """Exchange a token for a cookie."""
    key = await sign_in(request, (await actions.form_of(request)).get("token", ""))
    if key is None:
        problem = "This token is not known, or was revoked."
        return render("sign_in.html", 401, problem=problem, scope=None, signed_in=False)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE, key, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


@router.post("/page/sign-out")
async def signed_out(request: Request, session: SessionCookie = None) -> Response:
    """End the session."""
    _sessions(request).close(session or "")
    answer = RedirectResponse("/page/sign-in", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def _who(request: Request) -> dict[str, Any]:
    """What whoever asks may do."""
    needs_token = request.app.state.service.settings.needs_token
    return {"scope": request.state.scope, "signed_in": needs_token}


async def _listed(request: Request, service: Service, threads: TheThreads) -> dict[str, Any]:
    lines = []
    for name in sorted(service.data_sets):
        data_set = service.data_sets[name]
        status = await status_api.status(service, threads, data_set)
        model = data_set.in_use.model
        series = request.app.state.activity.series(data_set.record.id)
        kept = None if model is None else model.record.kept_share
        latest = (await jobs_api.jobs(service, threads, data_set, 1, None)).items
        lines.append({"status": status, "rate": series.rate, "kept_share": kept, "job": words.job_state(latest)})
    problem = await threads.run(service.problem)
    return {"lines": lines, "problem": problem, "pending": service.writer.pending}


async def _live(request: Request, service: Service, threads: TheThreads, data_set: DataSet) -> dict[str, Any]:
    status = await status_api.status(service, threads, data_set)
    series = request.app.state.activity.series(data_set.record.id)
    model = data_set.in_use.model
    shown = {"name": data_set.name, "status": status, "series": series, "options": data_set.options}
    kept = None if model is None else model.record.kept_share
    reported = model is not None and (data_set.folder / report_name(model.record.file)).is_file()
    return shown | {"kept_share": kept, "reported": reported}


async def _promised(service: Service, threads: TheThreads, data_set: DataSet) -> dict[str, Any]:
    promise = await promise_api.promise(data_set)
    models = await promise_api.list_models(service, threads, data_set, MODELS_SHOWN, None)
    history = list(reversed(models.items))
    points = {
        "times": [model.fitted_at.timestamp() for model in history],
        "kept": [model.kept_share for model in history],
        "errors": [model.error for model in history],
        "tolerances": [model.tolerance for model in history],
        "promised": [model.promised for model in history],
    }
    return {"name": data_set.name, "promise": promise, "models": models.items, "points": points}


async def _jobs(service: Service, threads: TheThreads, data_set: DataSet) -> dict[str, Any]:
    found = await jobs_api.jobs(service, threads, data_set, JOBS_SHOWN, None)
    return {"name": data_set.name, "jobs": found.items}


Viewed = tuple[RowView, ModelInUse | None, Prediction | None]


def _view(data_set: DataSet, row: str, col: str = "") -> Viewed:
    in_use = data_set.in_use
    cell = predict(data_set, in_use, [row], [col])[0] if col else None
    return view_row(data_set, in_use, row), ModelInUse.of(data_set, in_use), cell


def _row_context(found: Viewed | None) -> dict[str, Any]:
    """A row with a bar for each of its cells, all on one scale."""
    if found is None:
        return {"view": None, "cell": None, "row_model": None, "kept_bars": [], "refused_bars": []}
    view, model, cell = found
    every = words.bars((each.low, each.value, each.high) for each in (*view.kept, *view.refused))
    drawn = {"kept_bars": every[: len(view.kept)], "refused_bars": every[len(view.kept) :]}
    return {"view": view, "cell": cell, "row_model": model} | drawn
