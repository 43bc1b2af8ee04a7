"""Checks in code that Inductor made (formats.md 3.8, observed.md 28)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.grammar import data_path
from analyzer.model import FaultRecord
from analyzer.witnesses.inductor import WITNESS

Read = Any


def fault_of(read: Read, lines: list[str] | str) -> FaultRecord:
    (fault,) = read(WITNESS, lines).records
    assert isinstance(fault, FaultRecord)
    return fault


def test_nan_assert_names_buffer_and_user_line(read: Read) -> None:
    text = Path(data_path("sample_logs") / "inductor/nan_assert/input.log").read_text(encoding="utf-8")
    fault = fault_of(read, text)
    assert (fault.kind, fault.label, fault.line, fault.last_line) == ("nan", "buf2", 55, 57)
    assert fault.python is not None
    assert (fault.python.line, fault.python.function) == (104, "forward")


def test_assert_that_did_not_fail_is_no_fault(read: Read) -> None:
    """The generated code itself can be printed (TORCH_LOGS=output_code)."""
    assert not read(
        WITNESS, ["    assert not buf2.isnan().any().item()", "    assert not buf2.isinf().any().item()"]
    ).records


@pytest.mark.parametrize(("word", "name"), [("NAN", "buf3"), ("INF", "arg0_1")])
def test_cpp_form(read: Read, word: str, name: str) -> None:
    fault = fault_of(read, [f"RuntimeError: At least one {word} in {name}"])
    assert (fault.kind, fault.label) == ("nan", name)


def test_guard_names_the_tensor(read: Read) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/srv/app/a.py", line 7, in f',
        "    y = compiled(x)",
        '  File "/var/cache/inductor/qz/cqz.py", line 88, in call',
        "    assert_size_stride(arg0_1, (64, 128), (128, 1))",
        "AssertionError: expected size 64==64, stride 1==128 at dim=0",
    ]
    fault = fault_of(read, lines)
    assert (fault.kind, fault.label, fault.line) == ("input_check", "arg0_1", 6)


def test_log_cut_anywhere_never_breaks(read: Read) -> None:
    text = Path(data_path("sample_logs") / "inductor/nan_assert/input.log").read_text(encoding="utf-8")
    for end in range(0, len(text), 11):
        read(WITNESS, text[:end])
