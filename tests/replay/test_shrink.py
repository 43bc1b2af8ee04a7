from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from analyzer.replay.shrink import Shrunk, shrink


def run(
    size: int,
    needed: set[int],
    makers: dict[int, int] | None = None,
    limit: int = 1000,
    stop_after: int | None = None,
) -> tuple[Shrunk, list[tuple[int, ...]]]:
    """Shrink ``size`` ops of which the last fails where all of ``needed`` ran."""
    tried: list[tuple[int, ...]] = []

    def closed(numbers: Iterable[int]) -> tuple[int, ...]:
        found, todo = set(), list(numbers)
        while todo:
            number = todo.pop()
            found.add(number)
            if (maker := (makers or {}).get(number)) is not None and maker not in found:
                todo.append(maker)
        return tuple(sorted(found))

    def fails(numbers: tuple[int, ...]) -> bool | None:
        if stop_after is not None and len(tried) >= stop_after:
            return None
        tried.append(numbers)
        return needed <= set(numbers)

    return shrink(range(size), size - 1, closed=closed, fails=fails, limit=limit), tried


def test_one_bad_op_of_200_takes_one_trial() -> None:
    shrunk, tried = run(200, {199})
    assert shrunk.smallest == (199,)
    assert (shrunk.minimal, len(tried)) == (True, 1)


def test_makers_of_inputs_stay() -> None:
    shrunk, _ = run(200, {199}, {199: 40, 40: 7})
    assert shrunk.smallest == (7, 40, 199)


def test_one_other_op_of_200_is_found_in_far_less_than_40_trials() -> None:
    for other in (0, 66, 100, 198):
        shrunk, tried = run(200, {other, 199})
        assert shrunk.smallest == (other, 199)
        assert len(tried) <= 20


@given(size=st.integers(2, 40), data=st.data())
def test_what_is_left_is_minimal_and_was_seen_failing(size: int, data: st.DataObject) -> None:
    needed = {*data.draw(st.sets(st.integers(0, size - 1), max_size=4)), size - 1}
    shrunk, tried = run(size, needed)
    assert set(shrunk.smallest) == needed
    assert shrunk.minimal
    assert len(tried) == len(set(tried))
    assert shrunk.smallest in tried or len(needed) == size


def test_the_limit_and_a_stop_keep_what_was_found() -> None:
    for shrunk, tried in (run(200, {140, 190, 199}, limit=5), run(200, {140, 190, 199}, stop_after=5)):
        assert len(tried) == 5
        assert not shrunk.minimal
        assert {140, 190, 199} <= set(shrunk.smallest) < set(range(200))
