"""Active learning: which cells to ask next, and where matrices that fit the observations still disagree."""

from surefill.active.disagreement import (
    Disagreement,
    disagreement_coefficient,
    disagreement_region,
    largest_disagreement,
)
from surefill.active.lookahead import Lookahead, by_column, only_where
from surefill.active.strategies import (
    STRATEGIES,
    KeptMargin,
    LookaheadUtility,
    RiskUtility,
    Strategy,
    choose_batch,
    choose_per_row,
    every_cell,
)

__all__ = [
    "STRATEGIES",
    "Disagreement",
    "KeptMargin",
    "Lookahead",
    "LookaheadUtility",
    "RiskUtility",
    "Strategy",
    "by_column",
    "choose_batch",
    "choose_per_row",
    "disagreement_coefficient",
    "disagreement_region",
    "every_cell",
    "largest_disagreement",
    "only_where",
]
