"""Numbers, shares and labels as text of the page, everything escaped."""

from __future__ import annotations

import html
import json
from typing import Any

SCRIPT_SIGNS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Signs that could end a script element or a line of it, as JSON escapes."""

LONGEST_LABEL = 48
"""Signs of a label that are shown; longer ones are cut, so that tables stay narrow."""


def escaped(text: object) -> str:
    """Text for HTML, in attributes too: no sign of it is markup."""
    return html.escape(str(text), quote=True)


def script_json(content: Any) -> str:
    """JSON for a script element: no text in it can close the element."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).translate(SCRIPT_SIGNS)


def shortened(label: object) -> str:
    """A label on one line, of at most 48 signs."""
    text = " ".join(str(label).split())
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def percent(share: float) -> str:
    """A share in percent, never rounded to none or all of it.

    >>> percent(0.0), percent(0.00012), percent(0.034), percent(0.62), percent(0.9999), percent(1.0)
    ('0%', 'under 0.1%', '3.4%', '62%', 'over 99.9%', '100%')
    """
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{share:.1%}" if 0 < share < 0.0995 or 0.995 <= share < 1 else f"{share:.0%}"


def number(value: float) -> str:
    """Three significant digits, thousands set apart.

    >>> number(0.56412), number(12345.6), number(2.0)
    ('0.564', '12,346', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def measured(value: float) -> str:
    """Three significant digits, zeros at the end too, for columns of numbers.

    >>> measured(0.47), measured(123.4)
    ('0.470', '123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"
