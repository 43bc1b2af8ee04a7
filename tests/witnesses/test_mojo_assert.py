"""Asserts of Mojo code (formats.md 3.10)."""

from __future__ import annotations

import time

import pytest

from analyzer.model import Advice, FaultRecord
from analyzer.witnesses.mojo_assert import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

PLACE = "/srv/app/kernels/badops.mojo:29:50"


def line(block: str = "3,0,0", thread: str = "17,0,0", level: str = "Error", at: str = "At: ") -> str:
    return f"{at}{PLACE}: block: [{block}] thread: [{thread}] Assert {level}: index 64 out of bounds"


def the_fault(read: Reader, text: list[str] | str) -> FaultRecord:
    (record,) = read(WITNESS, text).records
    assert isinstance(record, FaultRecord)
    return record


@pytest.mark.parametrize("at", ["At: ", "At ", "At"])
def test_a_device_assert_is_the_device_speaking(read: Reader, at: str) -> None:
    """All spellings: with a colon (26.7), without, and without a blank (2025)."""
    fault = the_fault(read, line(at=at))
    assert (fault.kind, fault.site, fault.line, fault.count) == ("device_assert", "device", 1, 1)
    assert fault.location is not None
    assert (fault.location.file, fault.location.line) == ("/srv/app/kernels/badops.mojo", 29)
    assert fault.text == "Assert Error: index 64 out of bounds (block [3,0,0], thread [17,0,0])"


def test_threads_that_fail_alike_are_one_fault(read: Reader) -> None:
    """Folded by place and message, with count and ranges."""
    fault = the_fault(read, [line(f"{b},0,0", f"{t},0,0") for b in range(2) for t in range(32)])
    assert (fault.count, fault.line, fault.last_line) == (64, 1, 64)
    assert fault.text.endswith("(64 lines: block [0,0,0] to [1,0,0], thread [0,0,0] to [31,0,0])")


def test_other_messages_are_other_faults(read: Reader) -> None:
    assert len(read(WITNESS, [line(), line().replace("64", "65")]).records) == 2


def test_the_cpu_form_was_raised_on_the_host(read: Reader) -> None:
    fault = the_fault(read, f"At {PLACE}:  Assert Error: index 64 out of bounds")
    assert (fault.kind, fault.site) == ("kernel_raised", "host")


def test_a_warning_is_advice(read: Reader) -> None:
    (record,) = read(WITNESS, line(level="Warning")).records
    assert isinstance(record, Advice)


def test_an_abort_ends_the_host(read: Reader) -> None:
    fault = the_fault(read, f"ABORT: {PLACE}: unreachable")
    assert (fault.kind, fault.site, fault.text) == ("host_abort", "host", "ABORT: unreachable")
    assert fault.location is not None
    assert the_fault(read, "ABORT: no place given").location is None


def test_an_assert_glued_to_a_progress_bar_is_read(read: Reader) -> None:
    fault = the_fault(read, [line(), f" 31%|███▌      | 16/51 [00:27<00:00]{line()}"])
    assert fault.count == 2
    assert the_fault(read, "16/51 [00:27<00:00]ABORT: out").kind == "host_abort"


def test_a_path_may_hold_the_word_that_opens_the_line(read: Reader) -> None:
    text = line().replace("/srv/app/kernels/badops", "/srv/Attention/At")
    location = the_fault(read, text).location
    assert location is not None
    assert location.file == "/srv/Attention/At.mojo"


def test_a_line_cut_anywhere_is_a_fault_a_loss_or_not_gated(read: Reader) -> None:
    whole = line()
    for cut in range(1, len(whole)):
        text = whole[:cut]
        reading = read(WITNESS, text)
        if "Assert Error:" in text:
            assert len(reading.records) == 1
        assert len(reading.records) + len(reading.losses) <= 1


def test_two_writers_in_one_line_are_a_loss(read: Reader) -> None:
    reading = read(WITNESS, "At /srv/app/kAt: other.mojo block: [0,0 Assert Error: index")
    assert [loss.count for loss in reading.losses] == [1]
    assert not reading.parsed


@pytest.mark.parametrize(
    "text",
    [
        "k.cu:12: f: block: [0,0,0], thread: [1,0,0] Assertion `i < n` failed.",
        "The test will Assert that it works",
        "mpirun: ABORT: node 3",
    ],
)
def test_other_programs_asserts_are_none_of_ours(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert (reading.records, reading.parsed, reading.losses) == ([], [], [])


def test_a_hundred_thousand_threads_take_seconds() -> None:
    """Every line differs in block and thread; only the rest goes through the grammar."""
    log = MemoryLog([line(f"{n // 1024},0,0", f"{n % 1024},0,0") for n in range(100_000)])
    frame = log.gated(WITNESS)
    began = time.process_time()
    (record,) = WITNESS.read(frame, log).records
    assert time.process_time() - began < 5
    assert isinstance(record, FaultRecord)
    assert record.count == 100_000
