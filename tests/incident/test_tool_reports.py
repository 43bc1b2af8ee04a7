"""Reports of a tool that tell of no failure by themselves."""

from __future__ import annotations

from typing import Any

from analyzer.incident.tool_reports import confirmed_reports
from analyzer.model import FaultRecord
from tests.incident.records import after, assign_roles, fault


def reported(line: int, kind: str = "configuration", code: int | None = 801, **more: Any) -> Any:
    return fault(line, kind, code=code, advice=True, witness="compute-sanitizer", **more)


def with_backed(records: list[FaultRecord]) -> list[FaultRecord]:
    return after(confirmed_reports, records)


def test_a_report_alone_is_advice_and_no_root() -> None:
    assert [one.role for one in assign_roles([reported(1)])] == ["advice"]


def test_a_report_beside_a_failure_never_takes_its_place() -> None:
    assert [one.role for one in assign_roles([reported(1), fault(5)])] == ["advice", "root"]


def test_a_report_of_what_the_program_failed_of_is_a_fault() -> None:
    (first, second) = with_backed([reported(1), fault(5, "configuration", code=801)])
    assert (first.advice, second.advice) == (False, False)
    assert with_backed([reported(1), fault(5, "configuration", code=2)])[0].advice
    assert with_backed([reported(1), fault(5, "configuration", code=801, source=1)])[0].advice


def test_out_of_memory_needs_no_second_text_of_the_same_code() -> None:
    memory = reported(1, "out_of_memory", 2)
    assert not with_backed([memory, fault(5, "unknown", witness="python_traceback")])[0].advice
    assert with_backed([memory])[0].advice
