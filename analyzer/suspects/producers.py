"""Who made the integers that an op indexes with: the op that faults on them can be the messenger (rule 6).

The op log of PyTorch names the writer of each integer operand: ``index.from=122``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.model import OpFacts
from analyzer.numbers import natural
from analyzer.schema import Reason, Value

_FROM = ".from"
_BY_HAND = "custom__"
_ABOVE = 0.3  # one that made the index stands above the one that met it; both stay suspects
# They give memory or copy it: the values are older.
_NO_MAKER = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "_to_copy", "copy_", "clone", "zeros"}
)


class Writer(Value):
    """An integer operand and the id of the op that wrote it. ``low``, ``high``: null = values not read."""

    operand: str
    id: int
    low: str | None
    high: str | None

    @property
    def words(self) -> str:
        """``index (5 to 8)``."""
        return self.operand if self.low is None else f"{self.operand} ({self.low} to {self.high})"


def writers_of(op: OpFacts) -> list[Writer]:
    """Who wrote the integer operands of an op, as its record says."""
    told = dict(op.detail.attributes)
    return [
        Writer(
            operand=name,
            id=number,
            low=told.get(f"{name}.min"),
            high=told.get(f"{name}.max"),
        )
        for key, value in op.detail.attributes
        if key.endswith(_FROM)
        and (name := key.removesuffix(_FROM))
        and (number := natural(value)) is not None
    ]


def is_by_hand(op: OpFacts) -> bool:
    """A kernel that somebody wrote, not one of the framework's."""
    return any(leaf.startswith(_BY_HAND) for leaf in op.leaves)


def makes_values(name: str) -> bool:
    """Whether an op computes what it writes."""
    return name.rpartition("::")[2] not in _NO_MAKER


def inherited(ops: Sequence[OpFacts], weights: Sequence[float]) -> Mapping[int, Reason]:
    """Further evidence against kernels that made the index of a more suspect op, by place in ``ops``.

    Only for kernels written by hand: those of the framework compute what they are asked to.

    Args:
        ops: The window, in launch order.
        weights: Suspicion of each so far.
    """
    places = {(op.run, op.ref.id): place for place, op in enumerate(ops)}
    found: dict[int, Reason] = {}
    for place, op in enumerate(ops):
        for writer in writers_of(op):
            maker = places.get((op.run, writer.id))
            if maker is None or maker >= place or not is_by_hand(ops[maker]):
                continue
            weight = weights[place] - weights[maker] + _ABOVE
            if weights[place] > 0 and weight > (found[maker].weight if maker in found else 0):
                text = f"wrote {writer.operand}, which {op.ref.name} (id {op.ref.id}) reads as integers"
                lines = [ops[maker].launch_line, op.launch_line]
                found[maker] = Reason(evidence="producer", text=text, weight=round(weight, 3), lines=lines)
    return found
