"""What is an error in the words of a printer that nobody knows, and what only sounds like one."""

from __future__ import annotations

import pytest

from analyzer.speech.ends import exit_code, tells_own_end
from analyzer.speech.errors import goes_on, reports, says_failure


@pytest.mark.parametrize(
    "text",
    [
        "rocBLAS error: Cannot read /opt/TensileLibrary.dat: No such file or directory for GPU arch",
        "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64",
        "[1700000000.123456] [node1:4242 :0] ib_md.c:1270 UCX  ERROR ibv_reg_mr(address=0x7f) failed",
        "bits/stl_vector.h:1130: std::vector<int>::operator[]: Assertion '__n < size()' failed.",
    ],
)
def test_printer_without_a_rule_says_that_something_failed(text: str) -> None:
    assert says_failure(text, None)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("finished with 0 errors in 3 files", None),
        ("validation error: 0.0312, step 200", None),
        ("no error was found in the checkpoint", None),
        ("retrying after a failed download (attempt 1 of 3)", None),
        ("could not load the optional extension", "WARNING"),
        ("WARNING: failed to import flash_attn", None),
        ("worker 3 died, see the log of the node", None),
        ("    raise EOFError", None),
        ("Reason:       Error", None),
    ],
)
def test_word_of_failure_alone_is_no_error(text: str, level: str | None) -> None:
    assert not says_failure(text, level)


@pytest.mark.parametrize("before", ["CUDA error (a.h:188): ", "ret = ", "", "FAIL at conv.cu:21: "])
def test_macro_and_return_code_report_what_stands_behind_them(before: str) -> None:
    assert reports(before, None)


@pytest.mark.parametrize("before", ["this guide tells what to do about ", "if you see ", "no sign of "])
def test_talk_about_an_error_reports_none(before: str) -> None:
    assert not reports(before, None)


def test_farewell_is_no_work() -> None:
    assert goes_on("all slots are idle", "INFO")
    assert not goes_on("Shutting down", "INFO")


def test_own_end_and_exit_code_are_told_apart_from_talk() -> None:
    assert tells_own_end("thread 'main' panicked at src/main.rs:4:5:")
    assert not tells_own_end("the thread panicked yesterday")
    assert exit_code("Error: Process completed with exit code 1.") == 1
    assert exit_code("if it ends with exit code 1, look above") is None
