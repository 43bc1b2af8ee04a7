"""Texts that ended the analysis once: each kind is a counted loss, or read without the value that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from tests.fuzz.checks import check

DIGITS = "9" * 4301
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 250 MiB. GPU 0 has a total capacity of "
    f"79 GiB of which 4 GiB is free. Of the allocated memory {'9' * 330} GiB is allocated by PyTorch, "
    "and 1 GiB is reserved by PyTorch but unallocated."
)
PRINTS = (
    "[ before_launch - at::_ops::cumsum::call-b]:\n[ before_launch - aoti_torch_cpu_mm_out - 6  ]:\n"
    "[  after_launch - aoti_torch_cpu_mm_out - buf6  ]:\nMin value: -8\nMax value: -nan\n"
    "[  after_launch - at::_ops::cumsum::call -f0  ]:"
)
TEXTS = {
    "grammar read outside of a handler": "NaN/Inf detected in '' (>): 4NaN,0Inf",
    "launch inside another writer's": PRINTS,
    "digits: line of a source file": f"CUDA error at ./lib/main.cpp:{DIGITS}: invalid argument",
    "superscript: line of a source file": (
        "2 CUDA device-side assertion failures were found on GPU #0\nAssertion failure 0\n"
        "File containing assertion = \u00b2"
    ),
    "digits: sequence": (
        f"[E cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={DIGITS}, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds"
    ),
    "digits: exit code": f"bash exited with code {DIGITS}",
    "superscript: pid": "ray.exceptions.ActorDiedError: The actor died\n\tpid: \u00b2",
    "circled digit: exit code": "Rank 0 scheduler is dead. Please check the logs.\nExit code: \u2460",
    "digits: pid": f"NVRM: Xid (PCI:0009:01:00): 45, pid={DIGITS}, name=python3, Ch 00000008",
    "size beyond a double": OOM,
    "rank beyond a column": (
        "Shard complete standard error output:\n\nTraceback (most recent call last):\nRuntimeError: x rank="
        + "1" * 20
    ),
    "printed value with 400 digits": PRINTS.replace("-8", "9" * 400),
    "line behind the end": "[ after_launch - v-u]:\nRequires grad: [ after_launch - _-1 ]:",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_text_of_no_program_ends_no_analysis(text: str, tmp_path: Path) -> None:
    """Every line is counted once, and all reports of it can be written and read back."""
    outcome = check(f"{text}\n".encode(), tmp_path)
    assert outcome.failure is None
    assert not outcome.refused


@pytest.mark.parametrize(
    "kind", ["grammar read outside of a handler", "size beyond a double", "digits: exit code"]
)
def test_refused_text_is_a_loss_with_its_line(kind: str, tmp_path: Path) -> None:
    """And what stands around it is read as ever."""
    fault = "RuntimeError: CUDA error: an illegal memory access was encountered"
    path = tmp_path / "serve.log"
    path.write_text(f"ok\n{TEXTS[kind]}\n{fault}\n")
    result = analyze([str(path)])
    assert [loss.line for loss in result.losses] == [2]
    assert result.accounting.unrecognised == 1
    assert any(record.line == 3 and record.role == "root" for record in result.faults)
