"""What a process said before it ended: the probable cause where nobody knows another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result


def analysed(folder: Path, text: str) -> Result:
    """The result of one log."""
    log = folder / "serve.log"
    log.write_text(text)
    return analyze([str(log)])


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        ("x 1\nlib: failed to open /a.bin: No such file\nBus error (core dumped)\n", 2, "configuration"),
        ("nvcc a.cu\nptxas fatal   : Unresolved extern function 'f'\n", 2, "configuration"),
        ("a\npanic: runtime error: index out of range\n\ngoroutine 1 [running]:\n", 2, "unknown"),
        ("a\nthread 'main' panicked at src/a.rs:1:2:\nfailed to allocate 3 GiB\n", 2, "out_of_memory"),
        ("UCX  ERROR ibv_reg_mr failed: Cannot allocate memory\nExited with code 255\n", 1, "out_of_memory"),
    ],
)
def test_last_words_are_the_probable_cause(tmp_path: Path, text: str, line: int, kind: str) -> None:
    result = analysed(tmp_path, text)
    root = next(fault for fault in result.faults if fault.role == "root")
    assert (root.line, root.kind) == (line, kind)
    assert result.conclusion.confidence == "likely"
    assert result.conclusion.suspect is None
    assert not result.suspects


def test_death_is_the_consequence_of_last_words(tmp_path: Path) -> None:
    result = analysed(tmp_path, "lib error: cannot read kernels.dat for this GPU\nAborted (core dumped)\n")
    assert [fault.role for fault in result.faults] == ["root", "cascade"]


def test_process_that_worked_on_did_not_die_of_an_earlier_error(tmp_path: Path) -> None:
    text = "lib error: cannot read table.dat\nINFO: all slots are idle\nAborted (core dumped)\n"
    result = analysed(tmp_path, text)
    assert [fault.witness for fault in result.faults] == ["process_death"]


def test_known_fault_is_never_overridden(tmp_path: Path) -> None:
    text = (
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
        "helper error: cannot write report\nAborted (core dumped)\n"
    )
    root = next(fault for fault in analysed(tmp_path, text).faults if fault.role == "root")
    assert root.kind == "illegal_address"


@pytest.mark.parametrize(
    "text",
    [
        "validation error: 0.3\nfailed samples: 0\nexit code 0\n",
        "WARNING: failed to import flash_attn, falling back to sdpa\nloaded\n",
        "[Net] player killed player2\n[Net] connection failed, retrying in 5 s\nframe 10\n",
        "usage: serve [--on-error {abort,skip}]\n  --max-failed N   abort after N failed requests\n",
        "- fix: CUDA error: an illegal memory access was encountered in paged attention\n",
        "- handle cudaErrorIllegalAddress by restarting the worker\n",
    ],
)
def test_harmless_words_of_failure_are_no_fault(tmp_path: Path, text: str) -> None:
    assert analysed(tmp_path, text).conclusion.confidence == "none"
