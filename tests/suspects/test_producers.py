"""The writer of an index operand: the op that faults on an index can be the messenger (design.md rule 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests.oplog import text as as_bytes

Analyzed = Callable[[list[str]], Result]
GATE = "grid=1;out_ptr=64xint64;bad=1;BLOCK=64"
ALIGN = "grid=1;source_ptr=64xfloat32;index_ptr=64xint64;out_ptr=64xfloat32;BLOCK=64"
LATE = [
    "Traceback (most recent call last):",
    '  File "/srv/app/serve.py", line 90, in main',
    "    print(work.out.sum().item())",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "CUDA kernel errors might be asynchronously reported at some other API call.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
]
DUMP = [
    "[23:09:04.515331] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)",
    "[23:09:04.515331] coredump:   - Device: 0",
    "[23:09:04.515331] coredump:   - SM: 0",
    "[23:09:04.515331] coredump:   - Warp: 0",
    "[23:09:04.515331] coredump:   - PC 0x7f12a0",
    "[23:09:04.515331] coredump: Stack trace (lane masks: active 0xFFFFFFFF, valid 0xFFFFFFFF):",
    "[23:09:04.515331] coredump:   #0\t0x7f8eaf7d50c0\tmoe_align_block_kernel",
]


def op(ident: int, name: str, line: int, details: str) -> list[str]:
    """A launch record of PyTorch's op log with its completion."""
    return [
        f"[OP] LAUNCH {name} [id={ident}] ",
        f"srv/app/serve.py:{line}:messenger",
        f";target=cuda:0;{details}",
        f"[OP] COMPLETE {name} [id={ident}] target=cuda:0",
    ]


def messenger(written_by: str = ";index_ptr.from=1", maker: str = "topk_gate_kernel") -> list[str]:
    """A kernel writes an index tensor, the next one reads it, and a sum follows."""
    return [
        *op(0, "aten::addmm", 40, "self=64xfloat32;mat1=8x64xfloat32;mat2=64x64xfloat32"),
        *op(1, maker, 70, GATE if "::" not in maker else "self=64xint64;other=1"),
        *op(2, "moe_align_block_kernel", 71, ALIGN + written_by),
        *op(3, "aten::sum", 90, "self=64xfloat32"),
    ]


@pytest.fixture
def analyzed(tmp_path: Path) -> Analyzed:
    def run(lines: list[str]) -> Result:
        path = tmp_path / "serve.log"
        path.write_bytes(as_bytes(lines))
        return analyze([str(path)])

    return run


def names(result: Result) -> list[str]:
    return [one.op.name for one in result.suspects]


def test_late_report_ranks_the_kernel_that_wrote_the_index_before_the_one_that_read_it(
    analyzed: Analyzed,
) -> None:
    result = analyzed([*messenger(), *LATE])
    assert names(result)[:2] == ["topk_gate_kernel", "moe_align_block_kernel"]
    assert result.conclusion.confidence in {"likely", "ranked"}
    first = next(one for one in result.suspects[0].reasons if one.evidence == "producer")
    assert first.text == "wrote index_ptr, which moe_align_block_kernel (id 2) reads as integers"
    assert first.lines == [5, 9]


def test_without_a_known_writer_the_reader_stays_first(analyzed: Analyzed) -> None:
    result = analyzed([*messenger(written_by=""), *LATE])
    assert names(result)[0] == "moe_align_block_kernel"


def test_an_op_of_the_framework_is_not_accused_of_its_operands(analyzed: Analyzed) -> None:
    """``aten::add`` computes what it is asked to: that it wrote the index says nothing against it."""
    result = analyzed([*messenger(maker="aten::add"), *LATE])
    assert names(result)[0] == "moe_align_block_kernel"
    assert not any(one.evidence == "producer" for suspect in result.suspects for one in suspect.reasons)


def test_a_core_dump_names_the_messenger_and_the_writer_is_the_first_suspect(analyzed: Analyzed) -> None:
    result = analyzed([*messenger(), *DUMP])
    assert names(result) == ["topk_gate_kernel", "moe_align_block_kernel"]
    assert result.conclusion.confidence == "ranked"
    assert result.conclusion.messenger is not None
    assert result.conclusion.messenger.name == "moe_align_block_kernel"


def test_a_core_dump_alone_proves_the_kernel(analyzed: Analyzed) -> None:
    result = analyzed([*messenger(written_by=""), *DUMP])
    assert names(result) == ["moe_align_block_kernel"]
    assert result.conclusion.confidence == "proven"
