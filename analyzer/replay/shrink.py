"""Delta debugging: the smallest list of ops that still fails.

By bisection, like ``git bisect`` once for each op that is needed: a trial is a child that loads a framework,
and ddmin (Zeller and Hildebrandt) takes twice as many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from analyzer.schema import Value

Numbers = tuple[int, ...]


class Shrunk(Value):
    """The smallest list that failed.

    ``minimal``: no part of it can be left out; false = the trials were used up, or somebody stopped it.
    """

    smallest: Numbers
    trials: int
    minimal: bool


def shrink(
    failing: Sequence[int],
    culprit: int,
    *,
    closed: Callable[[Iterable[int]], Numbers],
    fails: Callable[[Numbers], bool | None],
    limit: int,
) -> Shrunk:
    """Shrink a failing list of ops to the op that failed and what it needs.

    The op alone with its makers is tried first: mostly that is enough, and one trial is all it takes.

    Args:
        failing: Numbers of ops, in order, known to fail at ``culprit``; what comes after it never ran.
        culprit: The op that failed.
        closed: A list with the makers of its inputs.
        fails: Whether a list fails alike at that op; null = stop here.
        limit: Trials that may be made.
    """
    search = _Search(culprit, closed, fails, limit)
    search.smallest = tuple(number for number in failing if number <= culprit)
    if not search.tries(()):
        search.reduce([number for number in search.smallest if number != culprit])
    return Shrunk(smallest=search.smallest, trials=search.trials, minimal=not search.stopped)


class _Search:
    def __init__(
        self,
        culprit: int,
        closed: Callable[[Iterable[int]], Numbers],
        fails: Callable[[Numbers], bool | None],
        limit: int,
    ) -> None:
        self.smallest: Numbers = ()
        self.trials = 0
        self.stopped = False
        self._culprit = culprit
        self._closed = closed
        self._fails = fails
        self._limit = limit
        self._known: dict[Numbers, bool] = {}

    def tries(self, others: Iterable[int]) -> bool:
        """Whether the op fails with these others before it; if so, that is the smallest list so far."""
        numbers = self._closed([*others, self._culprit])
        numbers = tuple(number for number in numbers if number <= self._culprit)
        if len(numbers) >= len(self.smallest) and numbers != self.smallest:
            return False
        if numbers == self.smallest:
            return True
        if numbers not in self._known:
            if self._limit <= self.trials:
                self.stopped = True
                return False
            self.trials += 1
            found = self._fails(numbers)
            if found is None:
                self.stopped = True
                return False
            self._known[numbers] = found
        if self._known[numbers]:
            self.smallest = numbers
        return self._known[numbers]

    def reduce(self, others: list[int]) -> None:
        """Find what the op needs of the others, from the first on: each takes the logarithm of their number.

        Without any of ``rest`` it does not fail, with all of them it does: the place where that changes, when
        the first ones are left out, is an op that is needed.
        """
        needed: list[int] = []
        rest = others
        while rest and not self.stopped and not self.tries(needed):
            fails_from, passes_from = 0, len(rest)
            while passes_from - fails_from > 1 and not self.stopped:
                middle = (fails_from + passes_from) // 2
                if self.tries([*needed, *rest[middle:]]):
                    fails_from = middle
                else:
                    passes_from = middle
            needed.append(rest[fails_from])
            rest = rest[fails_from + 1 :]
        for one in needed:  # where failing depends on more than being there, some can still go
            self.tries([number for number in self.smallest if number not in {one, self._culprit}])
