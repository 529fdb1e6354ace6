"""The sentences of the page, made from what was found."""

from __future__ import annotations

from surefill.guarantee.figures import probability
from surefill.guarantee.selection import REFUSALS
from surefill.guarantee.wording import TARGETS
from surefill.report.contents import ReportContents
from surefill.report.formats import number, percent
from surefill.report.heat_map import HeatMap
from surefill.report.outcomes import ToleranceOutcome

SETTLED = (
    "The promise holds for a tolerance that was settled without looking at the calibration cells, and so at this "
    "curve; it does not for one picked because of how much it keeps."
)
"""Said below the slider, which invites to pick."""

WEIGHTED = "They are weighted as in the promise, by how rarely cells like them are observed."
"""How calibration cells count where the promise is about more than cells like them."""

BETTER_SUPPORTED = "More of them can be kept than of the missing cells, which are seldom as well supported."
"""Said where the two shares differ."""

STAGES = {
    "trial fit": "choosing how support is measured",
    "fit": "values and confidence",
    "risk": "expected errors",
    "promise": "the test on the calibration cells",
}
"""What the stages of a fit are for."""


def lead(contents: ReportContents) -> str:
    """What was asked and what is promised, in one sentence."""
    guarantee, asked = contents.guarantee, number(contents.selection.tolerance)
    loss = contents.selection.loss.mean_name
    table = f"this table of {len(contents.rows):,} by {len(contents.columns):,} cells"
    kept = f"{percent(contents.outcome.kept_share)} of all cells"
    if guarantee.withheld and not contents.selection.empty:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps {kept} and promises nothing of "
            f"that: {guarantee.withheld}"
        )
    if not guarantee.promised:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps nothing and promises "
            f"nothing: {contents.selection.reason}"
        )
    promises = f"promises, with probability at least {probability(guarantee.delta)}, that"
    if contents.about_filled:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill fills "
            f"{contents.filled(contents.outcome)} of the {contents.n_missing:,} missing cells, and {promises} these "
            "meet it on average, each counted once."
        )
    return (
        f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps {kept} and {promises} the mean over "
        f"{TARGETS[contents.aim]}, meets it. This is no promise about the cells that are filled."
    )


def settled(contents: ReportContents) -> str:
    """What choosing another tolerance means for the promise."""
    if contents.guarantee.withheld:
        return f"Nothing is promised at any of them: {contents.guarantee.withheld}"
    return SETTLED


def fills(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """What share of which cells a tolerance fills."""
    if contents.n_missing == 0:
        return "no cell is missing"
    if outcome.selection.empty:
        return f"fills none of the {contents.n_missing:,} missing cells"
    return f"fills {percent(outcome.filled_share)} of the {contents.n_missing:,} missing cells"


def filled_words(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """How many of the missing cells are filled."""
    if contents.n_missing == 0:
        return "no cell is missing"
    return f"{contents.filled(outcome)} of the {contents.n_missing:,} missing cells"


def panel_words(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """The same as a sentence without its full stop."""
    words = filled_words(contents, outcome)
    return f"Fills {words}" if contents.n_missing else words.capitalize()


def verdict(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """Whether a tolerance is promised, or could have been had it been asked for."""
    promised = not (outcome.selection.empty or contents.guarantee.withheld)
    if outcome is contents.outcome:
        return "✓ promised, as asked" if promised else "✗ not promised"
    return "✓ could be promised" if promised else "✗ could not be promised"


def why(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """Why not more is kept; the page has the numbers already."""
    selection = outcome.selection
    if contents.guarantee.withheld and not selection.empty:
        return f"Nothing is promised: {contents.guarantee.withheld}"
    return selection.sentence if selection.empty else selection.reason


def outcome_name(refusal: int) -> str:
    """What becomes of a missing cell, by its position in ``REFUSALS``."""
    return f"blank: {REFUSALS[refusal]}" if refusal else "filled"


def parts(outcome: ToleranceOutcome) -> list[tuple[str, float]]:
    """The missing cells by what becomes of them: words and shares, the filled ones first."""
    share = [float(each) for each in outcome.missing_shares]
    named = [(outcome_name(k), share[k]) for k in range(3)]
    return [*named, (outcome_name(4 if outcome.selection.empty else 3), share[3] + share[4])]


def curve_words(contents: ReportContents) -> str:
    """What is drawn solid and what dotted."""
    told = ["The line is the error of what could be kept, cells of least expected error first."]
    if contents.outcome.tail.risk.size:
        told.append(
            "Dotted, it goes on over those that are never kept, whatever their expected error: cells with too little "
            "support, and cells whose like are too rarely observed to be promised about."
        )
    if contents.selection.held_out_share > contents.outcome.filled_share > 0:
        told.append(BETTER_SUPPORTED)
    return " ".join(told)


def chosen(contents: ReportContents) -> str:
    """The set kept, as it is marked in the curve."""
    selection = contents.selection
    if selection.held_out_error is None:
        return "Nothing is kept at the tolerance asked for."
    share, loss = percent(selection.held_out_share), selection.loss.mean_name
    return f"● kept: {share} of the calibration cells, with {loss} {number(selection.held_out_error)}."


def axes_words(contents: ReportContents) -> str:
    """What rows and columns are."""
    names = contents.rows.name, contents.columns.name
    return "" if names == ("row", "column") else f"Rows stand for {names[0]}, columns for {names[1]}."


def map_words(heat_map: HeatMap) -> str:
    """What a square stands for."""
    order = "Rows and columns that are seen together lie together, the most trusted first."
    if heat_map.single:
        return f"Each square is one cell. {order}"
    down, across = len(heat_map.rows[0]), len(heat_map.cols[0])
    how = "the mean of" if heat_map.exact else "the mean of a few cells drawn from"
    return f"Each square is {how} up to {down:,} by {across:,} cells. {order}"


def kept_note(contents: ReportContents, outcome: ToleranceOutcome) -> str:
    """What the colours of the map of what is kept mean at a tolerance."""
    tolerance = number(outcome.selection.tolerance)
    if outcome.selection.empty:
        return f"Nothing is kept at tolerance {tolerance}."
    what = "Kept" if contents.heat_map.single else "Share of each square that is kept"
    return f"{what} at tolerance {tolerance}."


def opening_note(contents: ReportContents) -> str:
    """What the colours of the map mean as the page opens."""
    if contents.opens_on == "kept":
        return kept_note(contents, contents.outcome)
    return map_notes(contents)[contents.opens_on]


def map_notes(contents: ReportContents) -> dict[str, str]:
    """What the colours of each other layer mean."""
    return {
        "confidence": support_words(contents),
        "risk": "Coloured by quantiles: each colour covers equally many squares.",
        "observed": "Observed or missing." if contents.heat_map.single else "Share of each square that was observed.",
    }


def support_words(contents: ReportContents) -> str:
    """From which confidence on a cell is supported, and how that is known."""
    certificate, floor = contents.certificate, number(contents.selection.floor)
    if certificate.false_support is None:
        return f"Nothing below a confidence of {floor} is kept."
    return (
        f"From a confidence of {floor} on a cell is supported, and nothing below is kept; about "
        f"{percent(certificate.false_support)} of cells that nothing supports would pass, as tested on cells hidden on "
        "purpose."
    )


def reason_words(contents: ReportContents) -> dict[str, str]:
    """What each reason to leave a cell blank means."""
    floor, loss = number(contents.selection.floor), contents.selection.loss.expected_name
    return {
        REFUSALS[1]: f"its confidence is below {floor}: the observed cells do not tie its row and column together well "
        "enough for any value to be trusted.",
        REFUSALS[2]: "so few of its kind were observed that the calibration cells cannot vouch for it.",
        REFUSALS[3]: f"its {loss} is above what the tolerance leaves room for, on average over what is kept.",
        REFUSALS[4]: "the calibration cells are too few, or err too much, to promise it of any set of cells.",
    }


def example_words(contents: ReportContents) -> str:
    """How examples were found."""
    return (
        "No cell is missing."
        if contents.n_missing == 0
        else "Missing cells drawn at random, some that are filled and some that stay blank."
    )


def count_words(contents: ReportContents) -> str:
    """What the tables by count say."""
    loss = contents.selection.loss.mean_name
    weighted = "" if contents.aim == "observed" else f" {WEIGHTED}"
    return f"The {loss} of the calibration cells by how many cells of their row or column were observed.{weighted}"


def trust_words(contents: ReportContents) -> str:
    """What the tables of lines say, and how they were found."""
    axes = ((contents.rows, len(contents.columns)), (contents.columns, len(contents.rows)))
    sampled = [f"{axis.trust.n_looked_at} cells of each {axis.name}" for axis, n in axes if axis.trust.n_looked_at < n]
    note = f" Estimated from {' and '.join(sampled)}, drawn at random." if sampled else ""
    tolerance = number(contents.selection.tolerance)
    return (
        f"Share of all its cells, observed or not, that is kept at tolerance {tolerance}; mean confidence; number of "
        f"cells observed.{note}"
    )


def decile_words(contents: ReportContents) -> str:
    """What the groups by expected error are."""
    deciles = contents.deciles
    return (
        f"The {deciles.size.sum():,} calibration cells, each counted once, in {len(deciles.size)} groups by expected "
        "error. A group on the dotted line was as wrong as expected; above it, more wrong."
    )


def promise_terms(contents: ReportContents) -> dict[str, str]:
    """The sentences of the result, by what they are about."""
    guarantee, certificate, dominance = contents.guarantee, contents.certificate, contents.dominance
    return {
        **({} if dominance is None else {"Before all": dominance.sentence}),
        "Guarantee": guarantee.sentence,
        "Where it holds": guarantee.holds_over,
        "Not promised": guarantee.not_promised,
        "What was found": contents.selection.sentence,
        "Completed by": f"{contents.completed_by}.",
        f"Confidence: {certificate.standing}": certificate.sentence,
    }
