"""What is wrong with a request, in one sentence."""

from __future__ import annotations

from typing import Any

from pydantic_core import ErrorDetails

from surefill.inputs import VALUE_WORDS

PLACES = {"query": "the parameter", "path": "the address", "header": "the header", "body": "the body"}
"""Where things are said in a request."""


def sentence_of(error: ErrorDetails | dict[str, Any], place: str = "") -> str:
    """The sentence about one thing that a check found.

    >>> sentence_of({"loc": ("query", "n"), "msg": "Input should be greater than 0", "input": "0"})
    "the parameter 'n' should be greater than 0; got '0'."
    >>> sentence_of({"loc": ("observations", 3, "value"), "msg": "Field required", "input": {}}, "the body")
    "the body, 'observations' 3 'value' is missing."
    """
    location = list(error["loc"])
    if not place and location and location[0] in PLACES:
        place = PLACES[str(location.pop(0))]
    named = " ".join(str(step) if isinstance(step, int) else repr(step) for step in location if not _is_kind(step))
    joint = ", " if place == PLACES["body"] else " "
    subject = f"{place}{joint}{named}" if named else place
    message = error["msg"].removeprefix("Value error, ")
    if message == "Field required":
        return f"{subject} is missing."
    kind = error.get("type")
    if kind == "model_attributes_type" and not named:
        return f"{place} should be a JSON object, sent with the content type application/json."
    if kind == "json_invalid":
        return f"{place} is not JSON: {_said(error)}."
    if kind == "value_error":
        return f"{subject}: {message.rstrip('.')}."
    if location[-1:] == ["value"]:
        return f"{subject} must be {VALUE_WORDS}{_got(error.get('input'))}."
    words = message.removeprefix("Input ").rstrip(".")
    words = words if words != message.rstrip(".") else f"is refused: {words[0].lower()}{words[1:]}"
    return f"{subject} {words}{_got(error.get('input'))}."


def _said(error: ErrorDetails | dict[str, Any]) -> str:
    """What a reader of JSON said, and where: the framework has the character in the place, the library in words."""
    said = str(error.get("ctx", {}).get("error", error["msg"])).rstrip(".")
    at = [f" at character {step}" for step in error["loc"] if isinstance(step, int)]
    return said[0].lower() + said[1:] + "".join(at)


def _is_kind(step: object) -> bool:
    """Whether a step names a kind that was tried, such as ``constrained-str``, and not a part of the request."""
    return isinstance(step, str) and (step.startswith(("constrained-", "list[", "function-")) or step in ("str", "int"))


def _got(given: object) -> str:
    if isinstance(given, bool | int | float | None):
        return f"; got {given!r}"
    if isinstance(given, str) and len(given) <= 40:
        return f"; got {given!r}"
    return ""
