"""Whether the time of a call grows with its text, or faster. Noise is no finding."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIZES = (5_000, 10_000, 20_000, 40_000)
FLOOR_S = 0.02  # for the largest text; some kernels count processor time in steps of 4 ms
GLANCE_S = 0.0006  # for the smallest: what grows with the square is over the floor at the largest then
DEADLINE_S = 0.5  # of processor time, a call; exponential ones never end
FACTOR = 1.5  # how much more than linear is too much


class TooLongError(Exception):
    """A call did not end by its deadline."""


def growth(run: Callable[[str], object], text: Callable[[int], str]) -> str | None:
    """What is wrong with the growth of ``run`` over texts of ``SIZES``; null = linear.

    What is fast on the smallest or on the largest text needs no second look: the rest is measured at all
    sizes, best of three.
    """
    if _glance(run, text(SIZES[0])) < GLANCE_S or _seconds(run, text(SIZES[-1])) < FLOOR_S:
        return None
    times: list[float] = []
    for size in SIZES:
        times.append(min(_seconds(run, text(size)) for _ in range(3)))
        if times[-1] >= DEADLINE_S:  # the larger ones would not end either
            break
    allowed = max(times[0], FLOOR_S / 4) * SIZES[-1] / SIZES[0] * FACTOR
    if times[-1] < min(allowed, DEADLINE_S):
        return None
    shown = ", ".join(f"{1000 * one:.0f}" for one in times)
    return f"{shown} ms for {', '.join(map(str, SIZES))} characters"


def _seconds(run: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    try:
        with _deadline():
            run(text)
    except TooLongError:
        return DEADLINE_S
    return time.process_time() - start


def _glance(run: Callable[[str], object], text: str) -> float:
    """Wall time: finer than the clock of the processor, and too long at worst."""
    start = time.perf_counter()
    try:
        with _deadline():
            run(text)
    except TooLongError:
        return DEADLINE_S
    return time.perf_counter() - start


@contextmanager
def _deadline() -> Iterator[None]:
    """``re`` looks for signals while it matches."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, DEADLINE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TooLongError
