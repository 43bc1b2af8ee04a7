"""Texts that talk about an error are none: commit messages, help, source code, prompts (formats.md 7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.speech.explained import goes_on, is_explained

IMA = "CUDA error: an illegal memory access was encountered"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def result(folder: Path, text: str) -> Result:
    path = folder / "input.log"
    path.write_text(text, encoding="utf-8")
    return analyze([str(path)])


@pytest.mark.parametrize(
    "text",
    [
        f"    fix {IMA} in paged attention",
        f"3f1a2b3 fix: {IMA} when the batch is empty",
        "4f1a2b3 docs: how to debug CUDA error: device-side assert triggered",
        f'If you see "{IMA}", run under compute-sanitizer.',
        f"  --blocking   debug `{IMA}` with blocking launches",
        f"INFO 11-21 10:22:36 [a.py:4] handler for '{IMA}' registered",
        f"tests/test_errors.py::test_raises[{IMA}] PASSED",
        f'+    raise RuntimeError("{IMA}")',
        '-    throw std::runtime_error("CUDA error: misaligned address");',
        f"> user: I get `RuntimeError: {IMA}` what now?",
        f'> assistant: The error "{IMA}" is late.',
        f"environ({{'LAST_ERROR': '{IMA}', 'PATH': '/usr/bin'}})",
    ],
)
def test_who_talks_about_an_error_reports_none(tmp_path: Path, text: str) -> None:
    found = result(tmp_path, f"{text}\n")
    assert not found.faults
    assert (found.accounting.ignored, found.accounting.unrecognised) == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        f'    revert "handle {OOM}"',
        "    Segmentation fault (core dumped) was seen with it",
        "(raylet) [2026-03-11 10:22:12,123 I 12 12] node is not running low on memory",
    ],
)
def test_other_errors_are_talked_about_too(tmp_path: Path, text: str) -> None:
    assert not result(tmp_path, f"{text}\n").faults


@pytest.mark.parametrize(
    "text",
    [
        f"step 4012 failed: {IMA}",
        f'worker died with "{IMA}" while decoding',
        f"engine got {IMA}",
        f"ERROR:e:RuntimeError: {IMA} in step 3",
        f'{{"lvl": "error", "msg": "step failed: {IMA}"}}',
        f"│ torch.AcceleratorError: {IMA}         │",
        f"> torch.AcceleratorError: {IMA}",
        f"    | torch.AcceleratorError: {IMA}",
        f"E   torch.AcceleratorError: {IMA}",
        f"错误: 训练失败 RuntimeError: {IMA}",
        f"\x1b[31mERROR\x1b[0m \x1b[1mtorch.AcceleratorError: {IMA}\x1b[0m",
        f"RuntimeError('{IMA}')",
        f"abc\x00\x00 torch.AcceleratorError: {IMA}\x00",
        f"torch.AcceleratorError: {IMA}torch.AcceleratorError: {IMA}",
    ],
)
def test_who_reports_an_error_is_heard(tmp_path: Path, text: str) -> None:
    found = result(tmp_path, f"{text}\n")
    assert [(fault.role, fault.code) for fault in found.faults] == [("root", 700)]
    assert found.conclusion.suspect is None


def test_a_verb_counts_only_right_before_the_error() -> None:
    assert is_explained("how to fix ")
    assert not is_explained("fix did not help, step 3 failed: ")
    assert not is_explained("prefix ")


def test_a_sentence_that_says_that_something_failed_may_go_on() -> None:
    assert goes_on("the text ", '" is late')
    assert not goes_on("the worker died of ", '" in step 3')
    assert not goes_on("the text ", "")
