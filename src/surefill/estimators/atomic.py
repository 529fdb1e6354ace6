"""Methods that change an estimator as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def atomic(method: Method) -> Method:
    """Put the attributes back as they were if ``method`` fails or is interrupted, by Ctrl-C for example.

    >>> class Counter:
    ...     n = 0
    ...
    ...     @atomic
    ...     def count(self):
    ...         self.n += 1
    ...         raise KeyboardInterrupt
    >>> counter = Counter()
    >>> try:
    ...     counter.count()
    ... except KeyboardInterrupt:
    ...     print(counter.n)
    0
    """

    @wraps(method)
    def whole_or_not(self: Any, *given: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *given, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, whole_or_not)
