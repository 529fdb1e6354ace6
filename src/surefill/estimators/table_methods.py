"""What a fitted completer says about long tables: pairs scored, the best columns of a row, the rows like it."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from surefill.estimators.recommending import Ranking, recommend, similar
from surefill.estimators.scoring import predict_frame


class TableMethods:
    """Methods of :class:`surefill.PartialCompleter` that give tables."""

    def predict_frame(self: Any, table: Any, level: float | None = None) -> Any:
        """A long table of pairs in, the same lines with what is known of each out: the same kind of table.

        Columns added: value (or predicted, where the table has a value), confidence, risk, keep and reason, and with a
        ``level`` low and high, the ends of intervals. Rows or columns never seen get the prior's value, confidence 0,
        and the risk of predicting by it; they are not kept. ``reason`` says why a line is not kept, or that its cell
        was observed (:class:`surefill.guarantee.Reason`).

        Examples
        --------
        >>> import pandas as pd
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
        >>> scored = completer.predict_frame(pd.DataFrame({"row": [0, 99], "column": [3, 3]}), level=0.9)
        >>> list(scored.columns)
        ['row', 'column', 'value', 'confidence', 'risk', 'keep', 'reason', 'low', 'high']
        >>> scored["reason"].tolist()
        ['', 'row never seen']
        """
        return predict_frame(self, table, level)

    def recommend(
        self: Any,
        row: Any,
        n: int = 10,
        exclude: ArrayLike | None = None,
        include: ArrayLike | None = None,
        trusted: bool = True,
    ) -> Ranking:
        """The n columns of largest value for a row among those kept and not observed; of equal ones the least risk.

        Parameters
        ----------
        row : its label, or its position where rows have no labels.
        n : how many at most; fewer where fewer are kept.
        exclude, include : columns never to give, and the only ones to give.
        trusted : False to rank every unobserved column, kept or not; ``keep`` then says which are.

        Examples
        --------
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
        >>> best = completer.recommend(7, n=3)
        >>> list(best.table), len(best)
        (['column', 'value', 'confidence', 'risk'], 3)
        >>> best.to_frame().shape
        (3, 4)
        """
        return recommend(self, row, n, exclude, include, trusted)

    def similar(self: Any, row: Any, n: int = 10) -> Ranking:
        """The n rows whose predicted values are closest, by the root mean square difference over all columns.

        Examples
        --------
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
        >>> list(completer.similar(7, n=3).table)
        ['row', 'distance']
        """
        return similar(self, row, n)
