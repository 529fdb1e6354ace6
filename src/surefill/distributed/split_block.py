"""The rows' part in setting calibration cells aside: chances of being observed, coins, and raked weights."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array, Indices, IntArray
from surefill.completion.bayes.row_block import WHOLE
from surefill.distributed.merging import Histogram
from surefill.distributed.parts_block import Part, PartsBlock
from surefill.distributed.target_columns import TargetColumns
from surefill.guarantee.propensity.calibration import count_in_bins
from surefill.guarantee.propensity.factors import RANK, Contrast, GroupedContrast
from surefill.guarantee.propensity.raking import PRIOR
from surefill.guarantee.target_weights import LARGEST_RATE, TargetWeights
from surefill.kernels.line_sums import weighted_sums

SPLIT = "split"
"""The part with a row's chances, and with what becomes of each cell: 0 training, 1 calibration."""

FIRST, SECOND = "first", "second"
"""The two halves, O1 and O2, of the cells."""

HALVES, HELD_OUT, OUTSIDE, PATTERN, CHANCES = 101, 102, 103, 104, 105
"""Streams of random numbers."""

CONTRAST_CELLS = 1 << 20
"""Cells of rows whose chances are fitted at a time: some hundred megabytes."""

RESPONSES = 6
"""Newton steps of a row's own chances given the columns': a strictly concave problem of seven numbers."""


class SplitBlock(PartsBlock):
    """A block that sets calibration cells aside."""

    def hold_out_evenly(self, share: float) -> None:
        """Set a ``share`` of all cells aside."""
        self._parts[SPLIT] = {"cells": (self._coins(HELD_OUT, WHOLE) < share).astype(np.uint8)}

    def halve(self) -> tuple[Histogram]:
        """Part the cells by fair coins; how many rows have how many cells of the first half."""
        second = self._coins(HALVES, WHOLE) < LARGEST_RATE
        self._cells[FIRST], self._cells[SECOND] = (self._cells[WHOLE].select(each) for each in (~second, second))
        counts = np.bincount(self._rows(self._cells[FIRST]), minlength=self._m)
        self._parts[SPLIT] = {"row_counts": counts, "second": second}
        return (Histogram.of(counts),)

    def columns_of(self, table: str) -> tuple[Indices, int]:
        """Cells of each column, and all."""
        cells = self._cells[table]
        return np.bincount(cells.cols, minlength=self._n), len(cells)

    def set_margins(self, classes: Indices, log_odds: Array) -> tuple[float]:
        """Take the log odds of rows with so many cells; the sum of the odds."""
        part = self._parts[SPLIT]
        part["row_logit"] = log_odds[np.searchsorted(classes, part["row_counts"])]
        return (float(np.exp(part["row_logit"]).sum()),)

    def log_odds_of(self, rows: Indices) -> Array:
        """Log odds of those of these rows, numbers among all, that are here."""
        here = rows[(rows >= self._first) & (rows < self._first + self._m)] - self._first
        return self._parts[SPLIT]["row_logit"][here]

    def fit_pattern(self, columns: TargetColumns, total_odds: float, whole: bool, penalty: float, size: float) -> None:
        """(alpha_i, u_i) of each row given the columns': Newton's method on its own log likelihood.

        Cells not observed are drawn by their odds, as many as there are observed ones times three, or all taken.
        """
        assert columns.pattern is not None
        part, first = self._parts[SPLIT], self._cells[FIRST]
        part["row_pattern"] = np.zeros((self._m, RANK + 1))
        starts = np.append(0, np.cumsum(part["row_counts"]))
        per_row = self._n if whole else 1 + 4 * len(first) // max(1, self._m)
        step = max(1, CONTRAST_CELLS // per_row)
        for begin in range(0, self._m, step):
            rows = slice(begin, min(begin + step, self._m))
            found = slice(starts[rows.start], starts[rows.stop])
            contrast = self._contrast(rows, found, columns, total_odds, whole)
            grouped = GroupedContrast.of(contrast, contrast.rows, contrast.cols)
            own = np.zeros((rows.stop - rows.start, RANK + 1))
            for _ in range(RESPONSES):
                own = grouped.newton(own, columns.pattern, penalty, size)
            part["row_pattern"][rows] = own

    def _contrast(self, rows: slice, found: slice, columns: TargetColumns, total_odds: float, whole: bool) -> Contrast:
        """Found cells of some rows, numbered from 0, and cells drawn among those that were not."""
        first, logit = self._cells[FIRST], self._parts[SPLIT]["row_logit"]
        i, j = self._rows(first)[found], first.cols[found].astype(np.int64)
        col_odds = np.exp(columns.col_logit)
        col_chance, row_chance = col_odds / col_odds.sum(), np.exp(logit) / total_odds
        if whole:
            drawn, place = (each.ravel() for each in np.indices((rows.stop - rows.start, self._n)))
            drawn = drawn + rows.start
            rates_of_found, rates = np.ones(len(i)), np.ones(len(drawn))
        else:
            expected = columns.n_draws * row_chance[rows]
            drawn, number = _repeated(expected, self._row_coins(PATTERN, 0)[rows])
            drawn = drawn + rows.start
            place = _by_chance(col_chance, self._draws_of(PATTERN, drawn, 1 + number))
            rates, rates_of_found = (
                columns.n_draws * row_chance[r] * col_chance[c] for r, c in ((drawn, place), (i, j))
            )
        unseen = ~self._has(FIRST, drawn, place)
        r, c = np.append(i, drawn[unseen]), np.append(j, place[unseen])
        labels = np.repeat([1.0, 0.0], [len(i), int(unseen.sum())])
        base = logit[r] + columns.col_logit[c]
        share = 1 - LARGEST_RATE
        return Contrast(r - rows.start, c, labels, np.append(rates_of_found, rates[unseen]), base, share, share)

    def sampled_chances(self, columns: TargetColumns, share: float) -> Array:
        """Modelled chances of a share of the cells of the first half."""
        first = self._cells[FIRST]
        some = self._coins(CHANCES, FIRST) < share
        return columns.propensity(self._parts[SPLIT]).at(self._rows(first)[some], first.cols[some])

    def hold_out(self, columns: TargetColumns) -> tuple[int]:
        """Set cells of the second half aside, by their modelled chances; how many."""
        part, second = self._parts[SPLIT], self._cells[SECOND]
        part["chances"] = columns.propensity(part).at(self._rows(second), second.cols)
        assert columns.rate is not None
        held = self._coins(HELD_OUT, SECOND) < columns.rate.at(part["chances"]) / LARGEST_RATE
        cells = np.zeros(len(self._cells[WHOLE]), dtype=np.uint8)
        cells[part.pop("second")] = held
        part["cells"] = cells
        return (int(held.sum()),)

    def chances_outside(self, columns: TargetColumns, row_total: float, col_counts: Indices, n_rows: int, n_draws: int
    ) -> Part:  # fmt: skip
        """Modelled chances of drawn cells outside the first half, and their rates: half of them by how often rows and
        columns were seen, half from anywhere; where ``n_draws`` is 0, all cells."""
        part, m, n = self._parts[SPLIT], self._m, self._n
        if not n_draws:
            i, j = (each.ravel() for each in np.indices((m, n)))
            outside = ~self._has(FIRST, i, j)
            i, j = i[outside], j[outside]
            return {"chances": columns.propensity(part).at(i, j), "rates": np.ones(len(i))}
        row_chance, col_chance = (part["row_counts"] + 0.5) / row_total, (col_counts + 0.5) / (col_counts + 0.5).sum()
        by_weight, number = _repeated(n_draws / 2 * row_chance, self._row_coins(OUTSIDE, 0))
        anywhere, other = _repeated(np.full(m, n_draws / 2 / n_rows), self._row_coins(OUTSIDE, 1))
        i = np.append(by_weight, anywhere)
        u = self._draws_of(OUTSIDE, i, 2 + np.append(2 * number, 2 * other + 1))
        j = np.append(_by_chance(col_chance, u[: len(by_weight)]), (u[len(by_weight) :] * n).astype(np.int64))
        outside = ~self._has(FIRST, i, j)
        i, j = i[outside], j[outside]
        rates = n_draws / 2 * (row_chance[i] * col_chance[j] + 1 / (n_rows * n))
        return {"chances": columns.propensity(part).at(i, j), "rates": rates}

    def second_in_bins(self, edges: Array) -> tuple[Array]:
        """Cells of the second half in bins of their modelled log odds."""
        return (count_in_bins(edges, self._parts[SPLIT]["chances"]),)

    def begin_raking(self, columns: TargetColumns) -> tuple[Array, float]:
        """Weights of the cells of the second half before raking; their sums by column, and of all."""
        part, second, share = self._parts[SPLIT], self._cells[SECOND], 1 - LARGEST_RATE
        assert columns.calibrated is not None
        corrected = columns.calibrated.corrected(part.pop("chances"), self._rows(second), second.cols)
        part["weight"] = (1 - share * corrected) / ((1 - share) * corrected)
        return np.asarray(np.bincount(second.cols, part["weight"], self._n), float), float(part["weight"].sum())

    def rake(self, col_factor: Array, typical: float) -> tuple[Array]:
        """Factors of the rows given the columns'; what the weights of each column add up to with them."""
        part, second = self._parts[SPLIT], self._cells[SECOND]
        i, weight = self._rows(second), part["weight"]
        count = np.bincount(i, minlength=self._m)
        of_row = np.where(count > 0, np.bincount(i, weight, self._m) / np.maximum(count, 1), typical)
        cells, prior = self._n - part["row_counts"], PRIOR * of_row
        part["row_factor"] = (cells + prior) / (weighted_sums(i, second.cols, weight, col_factor, self._m) + prior)
        return (weighted_sums(second.cols, i, weight, part["row_factor"], self._n),)

    def finish_split(self) -> None:
        """Forget the halves."""
        for name in ("weight", "chances", "second"):
            self._parts[SPLIT].pop(name, None)
        for table in (FIRST, SECOND):
            self._cells.pop(table, None)

    def _weights(self, columns: TargetColumns) -> TargetWeights:
        return columns.weights(self._parts[SPLIT], (self._m, self._n))


def _repeated(expected: Array, coins: Array) -> tuple[Indices, Indices]:
    """Rows as often as ``expected`` on average, floor(expected + coin) times each, and the number of each draw."""
    times = np.floor(expected + coins).astype(np.int64)
    rows = np.repeat(np.arange(len(times)), times)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)


def _by_chance(chance: Array, coins: Array) -> IntArray:
    """Draws by these chances."""
    return np.minimum(np.searchsorted(np.cumsum(chance), coins, side="right"), len(chance) - 1)
