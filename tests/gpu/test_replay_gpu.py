"""GPU acceptance of issue C, for real. Each case follows a fault of the one before, in fresh children."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.cases import (
    CASES,
    TORCH,
    Case,
    first_suspect,
    missing,
    run_case,
    run_coredump,
    run_recorded,
)
from tests.gpu.op_cases import OP_CASES, OpCase, run_op_case

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_names_the_op_that_failed(case: Case, tmp_path: Path) -> None:
    if (why := missing(case)) is not None:
        pytest.skip(why)
    ran = run_case(case, tmp_path)
    assert ran.wrong == (), ran.report.statement


@pytest.mark.parametrize("case", OP_CASES, ids=lambda case: case.name)
def test_the_ops_of_a_recorded_log_come_to_the_verdict(case: OpCase, tmp_path: Path) -> None:
    if (why := missing(case)) is not None:
        pytest.skip(why)
    ran = run_op_case(case, tmp_path)
    assert ran.wrong == (), ran.report.statement


def test_the_core_dump_names_the_kernel_without_blocking(tmp_path: Path) -> None:
    if (why := missing(CASES[1])) is not None:
        pytest.skip(why)
    assert run_coredump([TORCH, "wild_pointer"], tmp_path) == "add_position_kernel"


def test_a_recording_names_the_writer_of_the_bad_index_first(tmp_path: Path) -> None:
    """The kernel that faults only reads it (observed.md 25)."""
    if (why := missing(CASES[1])) is not None:
        pytest.skip(why)
    result = run_recorded([TORCH, "messenger"], tmp_path)
    assert first_suspect(result) == "topk_gate_kernel", result.conclusion.statement
