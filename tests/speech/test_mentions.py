"""What a quiet logger says in passing is no failure; what it hands on is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.speech.mentions import is_mention

INFO = "INFO 11-21 10:22:33 [engine.py:123] "
MAX = "16:05:54.656 INFO: "
IMA = "CUDA error: an illegal memory access was encountered"
CALL = "CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
OPS = "".join(
    f"[OP] {event} {name} [id={number}]A=1x64xfloat32;target=gpu:0\n"
    for number, name in enumerate(("rms_norm", "custom__gather", "matmul"))
    for event in ("LAUNCH", "COMPLETE")
)


def result(folder: Path, *lines: str) -> Result:
    path = folder / "input.log"
    path.write_text(OPS + "\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path)])


@pytest.mark.parametrize(
    "line",
    [
        f"{MAX}if you see {CALL}, set MODULAR_DEBUG=device-sync-mode",
        f"{INFO}Registered handler for {IMA}",
        f"{INFO}watchdog: will restart the worker on RuntimeError: {IMA}",
        f"INFO:root:Tip: CUBLAS_STATUS_EXECUTION_FAILED usually hides {IMA}",
        f"{INFO}Known errors: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        f"{INFO}retry policy: [NCCL timeout, Segmentation fault (core dumped), {IMA}]",
        f"{INFO}Loaded 12 known signatures such as '{IMA}'",
        f"{INFO}In case of RuntimeError: {IMA} the worker is replaced",
        f"Registered handler for {IMA}",
        f"# RuntimeError: {IMA}",
        f"    // e.g. {IMA}, see the sanitizer",
        f"tests/test_fault.py::test_handler XFAIL (RuntimeError: {IMA})  [100%]",
        '10.0.0.1 - - [21/Nov/2025:10:20:31 +0000] "GET /kb/Fatal Python error: Aborted HTTP/1.1" 404 12',
        f"{IMA} means that a kernel read or wrote outside its buffers.",
        "  RuntimeError: CUDA error: device-side assert triggered usually means an index error.",
        f"  MODULAR_DEBUG=device-sync-mode   Report the failing op: {CALL}",
        f"  --sync, --no-sync   Wait after each launch; else a later call reports {IMA}",
    ],
)
def test_an_error_in_passing_is_none_and_no_op_is_suspected(tmp_path: Path, line: str) -> None:
    found = result(tmp_path, line, line)
    assert (found.faults, found.suspects, found.losses) == ([], [], [])
    assert found.conclusion.confidence == "none"


def test_a_thousand_mentions_with_numbers_are_all_left_out(tmp_path: Path) -> None:
    found = result(tmp_path, *(f"{INFO}request {n}: you can retry on {IMA} (10{n})" for n in range(1000)))
    assert (found.faults, found.accounting.ignored) == ([], 1000)


@pytest.mark.parametrize(
    "line",
    [
        f"{INFO}{IMA}",
        f"{INFO}stderr: RuntimeError: {IMA}",
        f"    RuntimeError: {IMA}",
        f"  MODEL=tiny {IMA}",
        f"{IMA}. This usually means that an earlier launch failed.",
        f"{INFO}worker 0 crashed: {IMA}",
        f"{INFO}Engine loop died with RuntimeError: {IMA}",
        f"{INFO}Got RuntimeError: {IMA}",
        f"{INFO}could not finish the step: {IMA}",
        f"{INFO}[TP0] {IMA}",
        f"{INFO}check if rank 3 is alive failed: {IMA}",
        f"{INFO}note: step 4 failed: {IMA}",
        f"{INFO}worker (e.g. 2) failed for prompt: {IMA}",
        f"ERROR:server:Failed to handle {IMA}",
        f"ERROR:server:no handler for {IMA}",
        f"WARNING:server:step 3 on gpu 1 {IMA}",
    ],
)
def test_an_error_that_is_handed_on_counts(tmp_path: Path, line: str) -> None:
    found = result(tmp_path, line)
    assert [fault.role for fault in found.faults] == ["root"]


def test_words_count_as_whole_words() -> None:
    assert is_mention("scanner knows about ", "INFO")
    assert not is_mention("maybelline: ", "INFO")
    assert not is_mention("candle kernel hit ", "INFO")
    assert not is_mention("can't run: ", "INFO")


@pytest.mark.parametrize(
    "line",
    [
        r'        printf("CUDA error: %s\n", cudaGetErrorString(err));',
        '  TORCH_CHECK(err == cudaSuccess, "CUDA error: ", cudaGetErrorString(err));',
        '    assert(status == CUBLAS_STATUS_SUCCESS && "CUDA error: cublas");',
        r'#define CHECK(x) if (x != cudaSuccess) { fprintf(stderr, "CUDA Error: %s at %s:%d\n", s(x)); }',
        r'src/ggml-cuda.cu:85:    GGML_LOG_ERROR("CUDA error: %s\n", msg);',
        'std::cerr << "CUDA error: " << message;',
        "- `RuntimeError: CUDA error: an illegal memory access was encountered` means a bad index",
    ],
)
def test_source_code_and_documents_are_no_loss(tmp_path: Path, line: str) -> None:
    found = result(tmp_path, line)
    assert (found.faults, found.losses, found.accounting.ignored) == ([], [], 1)


def test_a_text_of_the_family_that_does_not_parse_is_a_loss(tmp_path: Path) -> None:
    found = result(tmp_path, "CUDA Error: ")
    assert [(loss.witness, loss.line) for loss in found.losses] == [("cuda_macros", 7)]
