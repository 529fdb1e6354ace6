"""What notebooks show of a completion."""

from __future__ import annotations

from surefill.completion.gap import OptimalityGap
from surefill.loop import Status
from surefill.notebook import card


def completion_card(completion: object, shape: tuple[int, int]) -> str:
    """Its size, how it was found, and that its values alone promise nothing."""
    facts: dict[str, object] = {"rows": shape[0], "columns": shape[1]}
    rank, gap, status = (getattr(completion, name, None) for name in ("rank", "gap", "status"))
    if rank is not None:
        facts["rank"] = rank
    if isinstance(gap, OptimalityGap):
        facts["how close to the best"] = gap.sentence
    if isinstance(status, Status):
        facts["stopped"] = status.value
    return card(type(completion).__name__, "A value for every entry, trusted or not; nothing is promised of it.", facts)
