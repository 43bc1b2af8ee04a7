"""Joins a device-side witness, or the stacks of an error text, to ops of the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from analyzer.model import KernelState, OpFacts
from analyzer.schema import SourceFrame, Value
from analyzer.tables.families import families
from analyzer.tables.kernels import is_launched_by, ops_of_kernel

_CUSTOM_PACKAGE = "mojo_pkg_"  # kernels of a custom-op package (observed.md 24)
_CUSTOM_OP = "custom__"
_ATEN = "aten::"
_LOOKS_UP = frozenset({"index", "embedding"})  # an embedding is a gather of rows, and runs the same kernels
_MIN_WORD = 4  # shorter leaf names (add, mul) occur in any mangled symbol
_NAMES_SHOWN = 4
_PATH_PARTS = 3  # op records keep the last three parts of a path (observed.md 2)


class Join(Value):
    """Ops that a kernel can belong to, and how that was told."""

    ops: tuple[OpFacts, ...]
    how: str


def join_kernel(state: KernelState, ops: Sequence[OpFacts], packages: Sequence[str] = ()) -> Join:
    """Ops of the window that the faulting kernel can belong to.

    Args:
        state: What the witness saw.
        ops: Facts of the window.
        packages: Custom-op packages that an IR file imports (``mojo_pkg_<hash>``).
    """
    if state.kernel.startswith(_CUSTOM_PACKAGE):
        found = tuple(op for op in ops if any(leaf.startswith(_CUSTOM_OP) for leaf in op.leaves))
        how = f"kernel {state.kernel} is of a custom-op package, and so are only custom__* ops"
        prefix = state.kernel.rsplit("_", 1)[0]
        if package := next((one for one in packages if one.startswith(prefix)), None):
            how += f"; the IR file imports that package ({package})"
    elif (launchers := ops_of_kernel(state.kernel)) and (known := _launched_by(launchers, ops)):
        found, how = known, _how(f"kernel {state.kernel}", known)
    else:
        found, how = _by_words(state.kernel, ops)
        if not found:
            found, how = _by_family(state.kernel, ops) or (found, how)
    fitting = tuple(op for op in found if _fits_launch(state, op))
    if state.grid and state.block and fitting:
        threads = prod(state.grid) * prod(state.block)
        shape = f"grid {_dims(state.grid)} x block {_dims(state.block)} = {threads} threads"
        how += f"; {shape} fit" + (
            " its operands" if fitting[0].tensors else ", operand sizes are not in the log"
        )
        return Join(ops=fitting, how=how)
    return Join(ops=found, how=how)


def join_assert(kernel: str | None, file: str | None, ops: Sequence[OpFacts]) -> Join:
    """Ops of the window that can have launched the kernel of an assert, by its name or its source file."""
    found = _launched_by(ops_of_kernel(kernel, file), ops)
    what = f"kernel {kernel}" if kernel else f"the kernel in {(file or '').rpartition('/')[2]}"
    return Join(ops=found, how=_how(what, found) if found else f"no op in flight is known to launch {what}")


def _launched_by(launchers: tuple[str, ...], ops: Sequence[OpFacts]) -> tuple[OpFacts, ...]:
    return tuple(op for op in ops if is_launched_by(op.ref.name.rpartition("::")[2], launchers))


def _how(what: str, found: Sequence[OpFacts]) -> str:
    names = sorted({op.ref.name for op in found})
    return f"{what} is launched by {', '.join(names[:_NAMES_SHOWN])}"


def _by_words(kernel: str, ops: Sequence[OpFacts]) -> tuple[tuple[OpFacts, ...], str]:
    """Ops whose longest leaf name stands in the kernel symbol."""
    symbol = kernel.lower()
    scored = [
        (max((len(word) for leaf in op.leaves for word in _words(leaf) if word in symbol), default=0), op)
        for op in ops
    ]
    best = max((score for score, _ in scored), default=0)
    if best < _MIN_WORD:
        return (), f"no op of the window has a name that stands in kernel {kernel}"
    found = tuple(op for score, op in scored if score == best)
    return found, f"kernel {kernel} holds the name of the op"


def _by_family(kernel: str, ops: Sequence[OpFacts]) -> tuple[tuple[OpFacts, ...], str] | None:
    """PyTorch ops that do the work of a PyTorch kernel: its name says gather, theirs embedding or index.

    Only kernels that look things up: those of one family share their kernels, and others do not launch them.
    """
    if not _LOOKS_UP & set(families([kernel])):
        return None
    found = tuple(op for op in ops if op.ref.name.startswith(_ATEN) and _LOOKS_UP & set(families(op.leaves)))
    if not found:
        return None
    names = ", ".join(sorted({op.ref.name for op in found}))
    return found, f"kernel {kernel} looks up rows by index, and of the ops in flight only {names} does"


def _words(leaf: str) -> list[str]:
    name = leaf.removeprefix(_CUSTOM_OP).removeprefix("mo.").lower()
    return [name, name.replace(".", "_"), *name.split(".")]


def _fits_launch(state: KernelState, op: OpFacts) -> bool:
    """Whether a one-thread-an-element launch of an operand has this grid; true where sizes are unknown."""
    if not (state.grid and state.block and op.tensors):
        return True
    threads, block = prod(state.grid) * prod(state.block), prod(state.block)
    sizes = [prod(d for d in tensor.shape if d is not None) for tensor in op.tensors if tensor.shape]
    return any(size <= threads < size + block for size in sizes) or not sizes


def _dims(dims: tuple[int, int, int]) -> str:
    return "(" + ",".join(map(str, dims)) + ")"


def stack_key(stack: Iterable[SourceFrame]) -> tuple[tuple[str, int, str], ...]:
    """A stack in the form in which op records and error texts agree."""
    return tuple(
        ("/".join(frame.file.strip("/").split("/")[-_PATH_PARTS:]), frame.line, frame.function)
        for frame in stack
    )


def ops_with_stacks(stacks: Sequence[Sequence[SourceFrame]], ops: Sequence[OpFacts]) -> list[OpFacts]:
    """Ops made by just these source stacks; in a text that was cut, the one op that has all whole ones."""
    wanted = {stack_key(stack) for stack in stacks}
    if not wanted:
        return []
    keyed = [({stack_key(stack) for stack in op.detail.stacks}, op) for op in ops]
    equal = [op for keys, op in keyed if keys == wanted]
    if equal:
        return equal
    whole = {stack_key(stack) for stack in stacks[:-1]} or wanted  # the last stack may be cut itself
    holding = [op for keys, op in keyed if keys >= whole]
    return holding if len(holding) == 1 else []
