"""An op as its record tells it, and as the inference sees it."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.schema import OpRef, SourceFrame, TensorInfo, Value


class OpExpr(Value):
    """An op name read as an expression: ``Epilogue(matmul, silu, operandIndices=[0])``.

    ``kind`` is what a glued inner name puts before the expression (``matmul`` in
    ``matmulEpilogue(mo.matmul, ...)``); ``attributes`` are the keyword arguments, values as text.
    """

    name: str
    args: tuple[OpExpr, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    kind: str | None = None

    def leaves(self) -> Iterator[str]:
        """Names of the ops inside, left to right, without the structure words around them."""
        if not self.args:
            yield self.name
        for arg in self.args:
            yield from arg.leaves()


class OpDetail(Value):
    """What stands after the id of an op record: attributes, frames, fusion count, device.

    ``stacks`` holds one list of frames for each fused source op, outermost frame first.
    """

    attributes: tuple[tuple[str, str], ...] = ()
    device: str | None = None
    fused_from: int | None = None
    stacks: tuple[tuple[SourceFrame, ...], ...] = ()
    tensors: tuple[TensorInfo, ...] = ()


class FusionNode(Value):
    """One node of a ``Fusion info:`` tree; ``inputs`` and ``outputs`` are empty on structure nodes."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    children: tuple[FusionNode, ...] = ()


class OpFacts(Value):
    """Everything known about one op of the window.

    ``source`` holds one user frame for each fused source op, most specific first; ``novel`` = the name
    does not occur in the steps before the window (null = there are none to compare with);
    ``count_before`` = launches of that name before the window; ``inner`` = ops it encloses;
    ``symbols`` = kernel symbols that an IR file gives for it.
    """

    ref: OpRef
    launch_line: int
    completion_line: int | None
    run: int
    expr: OpExpr | None
    leaves: tuple[str, ...]
    detail: OpDetail
    tensors: tuple[TensorInfo, ...] = ()
    source: tuple[SourceFrame, ...] = ()
    novel: bool | None = None
    count_before: int = 0
    inner: tuple[OpRef, ...] = ()
    symbols: tuple[str, ...] = ()
