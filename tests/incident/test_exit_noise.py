"""What a program prints while it ends is not why; a wait that meets a launch error launched nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Fault, Result

DESTROYED = (
    "[W1121 10:30:00.100000000 CUDAGuardImpl.h:119] Warning: CUDA warning: driver shutting down "
    "(function destroyEvent)"
)
ABORT = [
    "terminate called after throwing an instance of 'c10::Error'",
    "  what():  CUDA error: driver shutting down",
    "Aborted (core dumped)",
]
IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


def result(folder: Path, *lines: str) -> Result:
    path = folder / "serve.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return analyze([str(path)])


def root(folder: Path, *lines: str) -> Fault:
    (found,) = [fault for fault in result(folder, *lines).faults if fault.role == "root"]
    return found


@pytest.mark.parametrize("lines", [[DESTROYED, DESTROYED], ABORT, [DESTROYED, *ABORT]])
def test_a_driver_that_has_shut_down_is_no_fault(tmp_path: Path, lines: list[str]) -> None:
    found = result(tmp_path, "training finished, saved to out/", *lines)
    assert {fault.role for fault in found.faults} == {"teardown"}
    assert found.conclusion.confidence == "none"


def test_the_error_before_the_shut_down_is_the_root(tmp_path: Path) -> None:
    assert root(tmp_path, IMA, DESTROYED, *ABORT).code == 700


def test_a_death_far_behind_the_shut_down_of_another_run_counts(tmp_path: Path) -> None:
    lines = [DESTROYED, *("step" for _ in range(50)), "Segmentation fault (core dumped)"]
    assert root(tmp_path, *lines).kind == "host_segfault"


def _traceback(call: str, error: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/srv/infer.py", line 31, in main',
        f"    {call}",
        error,
    ]


@pytest.mark.parametrize(
    ("call", "error", "trust"),
    [
        ("torch.cuda.synchronize()", "invalid argument", "late"),
        ("torch.cuda.synchronize()", "invalid configuration argument", "late"),
        ("n = lengths.max().item()", "too many resources requested for launch", "late"),
        ("y = x.cpu()", "invalid argument", "exact"),  # the copy's own arguments can be bad
        ("torch.cuda.synchronize()", "out of memory", "exact"),
        ("y = kernel(x)", "invalid configuration argument", "exact"),
    ],
)
def test_a_wait_launches_nothing(tmp_path: Path, call: str, error: str, trust: str) -> None:
    found = root(tmp_path, *_traceback(call, f"torch.AcceleratorError: CUDA error: {error}"))
    assert found.trust == trust


def test_why_somebody_killed_a_process_is_not_known(tmp_path: Path) -> None:
    assert (
        result(tmp_path, "bash: line 1:  4711 Killed                  python serve.py").conclusion.cause_class
        is None
    )


def test_a_refused_call_behind_a_destructor_that_met_the_fault_is_not_the_first(tmp_path: Path) -> None:
    met = DESTROYED.replace("driver shutting down", "an illegal memory access was encountered")
    found = root(tmp_path, met, "torch.AcceleratorError: CUDA error: invalid resource handle")
    assert (found.code, found.trust) == (700, "late")
