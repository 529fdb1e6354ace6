"""What notebooks show of an object: a sentence and a small table, in the notebook's own colours.

Nothing sets a background or a text colour, so that light and dark themes both stay readable; every text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

# Notebooks style tables of their own accord; these undo what would clash with the theme.
PLAIN = "color:inherit;font-size:inherit;background:transparent;border:0"
CELL = f"{PLAIN};text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0"
RULE = "border:0;border-left:3px solid currentColor;padding-left:.8em;max-width:60em"


def card(title: str, sentence: str, facts: Mapping[str, object]) -> str:
    """A title, the sentence that matters most, then one line for each fact."""
    rows = "".join(
        f'<tr><th style="{CELL};white-space:nowrap">{_text(name)}</th>{_cell(fact)}</tr>'
        for name, fact in facts.items()
    )
    return _framed(title, sentence, rows)


def table(title: str, sentence: str, header: Sequence[object], lines: Sequence[Sequence[object]]) -> str:
    """A title, a sentence, and lines under a header."""
    head = "".join(f'<th style="{CELL}">{_text(name)}</th>' for name in header)
    rows = "".join(f"<tr>{''.join(_cell(value) for value in line)}</tr>" for line in lines)
    return _framed(title, sentence, f"<tr>{head}</tr>{rows}")


def _framed(title: str, sentence: str, rows: str) -> str:
    return (
        f'<div style="{RULE}"><strong>{_text(title)}</strong><p style="margin:.3em 0">{_text(sentence)}</p>'
        f'<table style="{PLAIN};border-collapse:collapse;margin:0"><tbody>{rows}</tbody></table></div>'
    )


def _cell(value: object) -> str:
    return f'<td style="{CELL}">{_text(value)}</td>'


def _text(value: object) -> str:
    return escape(f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value))
