"""Ops that read the same integers as at an earlier, sound launch: they cannot have met a bad index now.

The op log of PyTorch names the writer of each integer operand (``index.from=42``). Where that is the op that
had written it before the last sound launch of the same op at the same line, the values are the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model import OpFacts

_FROM = ".from"
Key = tuple[str, tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]


def key_of(op: OpFacts) -> Key | None:
    """Op, place and what its record says of shapes and writers; null = no writer of integers is told."""
    told = tuple(one for one in op.detail.attributes if not one[0].endswith((".min", ".max")))
    if not any(name.endswith(_FROM) for name, _ in told):
        return None
    return op.ref.name, tuple((frame.file, frame.line) for frame in op.source), told


def keys_of(ops: Iterable[OpFacts]) -> frozenset[Key]:
    """Keys of sound launches."""
    return frozenset(key for op in ops if (key := key_of(op)) is not None)
