"""Collectives that the ranks of a group gave different sizes (formats.md 3.6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.model import CollectiveState

# All ranks must give these the same number of elements; in the others it may differ from rank to rank.
_SAME_SIZE = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})
_Key = tuple[str, int | None, str | None]


def with_sizes(states: Sequence[CollectiveState]) -> list[CollectiveState]:
    """The states, with the size in the name of a collective where the ranks disagree about it.

    A rank that gives another number of elements than the rest hangs them all, with equal names and sequence
    numbers: ``ALLREDUCE(4096 elements)``.
    """
    sizes: dict[_Key, set[int]] = {}
    for state in states:
        if state.operation in _SAME_SIZE and state.elements is not None:
            sizes.setdefault(_key(state), set()).add(state.elements)
    return [_named(state) if len(sizes.get(_key(state), ())) > 1 else state for state in states]


def _key(state: CollectiveState) -> _Key:
    return state.group, state.sequence, state.operation


def _named(state: CollectiveState) -> CollectiveState:
    if state.elements is None:
        return state
    many = "" if state.elements == 1 else "s"
    return msgspec.structs.replace(state, operation=f"{state.operation}({state.elements} element{many})")
