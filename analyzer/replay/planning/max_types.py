"""Operand types of MAX ops: fusion trees of IR files and of error texts, in torch's words for dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from analyzer.errors import InputError
from analyzer.grammar import GrammarError
from analyzer.model import FusionNode
from analyzer.parse.fusion_tree import to_expr
from analyzer.parse.ir_file import parse_ir
from analyzer.parse.op_name import canonical, parse_op_name
from analyzer.pipeline import Analysis
from analyzer.replay.plan import PlanTensor
from analyzer.schema import TensorInfo

IR_ENDING = ".mojo"
# MLIR's and Mojo's spellings; what is missing here is a word that torch has no type for.
_DTYPES: Mapping[str, str] = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i1": "bool",
    "si8": "int8", "si16": "int16", "si32": "int32", "si64": "int64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu",
    **{word: word for word in (
        "float16", "float32", "float64", "bfloat16", "bool", "int8", "int16", "int32", "int64", "uint8",
        "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
    )},
}  # fmt: skip


class Trees(msgspec.Struct, frozen=True, kw_only=True):
    """Fusion trees by the canonical form of their expression, only where all of that form agree."""

    by_form: Mapping[str, FusionNode]

    def of(self, name: str) -> FusionNode | None:
        """The tree of an op, null = not known, or several ops of that name differ in their types."""
        return self.by_form.get(form_of(name) or "")


def form_of(name: str) -> str | None:
    """What op records and trees share; null = no expression."""
    try:
        return canonical(parse_op_name(name))
    except GrammarError:
        return None


def read_trees(analysis: Analysis, materials: Iterable[Path]) -> Trees:
    """Trees of all IR files (``--ir`` and materials) and of the error texts of the log.

    Raises:
        InputError: A ``.mojo`` file is none of ``ir-output-dir``.
    """
    trees = [tree for path in (*analysis.options.ir, *materials) for tree in _of_path(path)]
    trees += [record.fusion for record in analysis.known.records if record.fusion is not None]
    found: dict[str, list[FusionNode]] = {}
    for tree in trees:
        found.setdefault(canonical(to_expr(tree)), []).append(tree)
    return Trees(
        by_form={form: each[0] for form, each in found.items() if all(one == each[0] for one in each)}
    )


def _of_path(path: Path) -> Iterable[FusionNode]:
    files = sorted(path.glob(f"*{IR_ENDING}")) if path.is_dir() else [path]
    for file in files:
        if file.suffix == IR_ENDING:
            try:
                module = parse_ir(file.read_text(encoding="utf-8", errors="replace"))
            except OSError as error:
                raise InputError(f"{file}: cannot be read: {error.strerror}") from error
            except GrammarError as error:
                raise InputError(f"{file}: not a <graph>.mojo file of ir-output-dir: {error}") from error
            yield from (kernel.fusion for kernel in module.kernels if kernel.fusion is not None)


def plan_tensor(info: TensorInfo, device: str) -> PlanTensor | None:
    """A tensor of which shape and dtype are known, else null."""
    dtype = _DTYPES.get(info.dtype)
    if dtype is None or any(size is None for size in info.shape):
        return None
    shape = tuple(size for size in info.shape if size is not None)
    return PlanTensor(shape=shape, dtype=dtype, device=info.device or device)


def why_not_known(info: TensorInfo) -> str:
    """Why ``plan_tensor`` gave none."""
    if any(size is None for size in info.shape):
        return "a dimension of an operand is dynamic: the log does not tell its size"
    return f"an operand is of type {info.dtype or 'not told'}, which cannot be made"
