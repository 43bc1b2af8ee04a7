"""Switches of MAX, as it reports them and as somebody set them."""

from __future__ import annotations

import pytest

from analyzer.model import Advice, FaultRecord, ModeRecord, Reading
from analyzer.schema import NanCoverage
from analyzer.witnesses.max_modes import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

PLAN = """\
DEBUG::: mgp.buffer.plan stats:
  Total Allocations: 6
  Reused Allocations: 0 (0.0%)
  Total Allocation Size: 65544 bytes
  Final Pool Size: 65796 bytes
  Memory Saved: -252 bytes (-0.38447455144635667%)"""
REFUSED = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/max/engine/api.py", line 1411, in set_mojo_log_level
    level = LogLevel[level]
            ~~~~~~~~^^^^^^^
KeyError: 'trace'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/t1.py", line 6, in <module>
    s = InferenceSession(devices=[CPU()])
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/max/engine/api.py", line 1413, in set_mojo_log_level
    raise TypeError(
TypeError: Invalid log level (trace). Please use one of: ['NOTSET', 'TRACE', 'DEBUG', 'INFO', 'WARNING']"""
NAN = "[GEX-3703] NanCheckPass: checked 1 of 5 float kernel outputs (stride=20, graph @decoder)"


def modes(reading: Reading) -> dict[str, object]:
    return {record.name: record.value for record in reading.records if isinstance(record, ModeRecord)}


def test_a_refused_log_level_is_a_configuration_fault(read: Reader) -> None:
    """observed.md 1: MAX refuses lower case. The block begins with the first traceback of the chain."""
    reading = read(WITNESS, REFUSED)
    (fault,) = [record for record in reading.records if isinstance(record, FaultRecord)]
    assert (fault.kind, fault.site, fault.line, fault.block_first) == ("configuration", "host", 15, 1)
    assert fault.python is not None
    assert (fault.python.file, fault.python.line) == ("/srv/app/t1.py", 6)


def test_a_refused_log_level_is_answered_with_the_right_spelling(read: Reader) -> None:
    (advice,) = [record for record in read(WITNESS, REFUSED).records if isinstance(record, Advice)]
    assert advice.command == "MODULAR_DEBUG=op-log-level=TRACE"


def test_no_spelling_is_advised_that_is_not_in_the_list(read: Reader) -> None:
    reading = read(WITNESS, "TypeError: Invalid log level (verbose). Please use one of: ['NOTSET', 'TRACE']")
    assert [type(record) for record in reading.records] == [FaultRecord]


def test_nan_check_says_how_much_it_looked_at(read: Reader) -> None:
    """observed.md 17: a clean run at stride 20 proves little."""
    coverage = NanCoverage(graph="decoder", checked=1, of=5, stride=20, line=1)
    assert modes(read(WITNESS, NAN)) == {"nan_check": coverage}


def marks(reading: Reading) -> list[int]:
    assert reading.step_marks is not None
    return reading.step_marks["line"].to_list()


def test_buffer_plan_marks_a_step(read: Reader) -> None:
    """Its indented lines hold numbers of no use here: they count as ignored."""
    reading = read(WITNESS, f"loaded\n{PLAN}\n[OP] LAUNCH x [id=0] \n{PLAN}")
    assert (marks(reading), reading.parsed, reading.continuation) == ([2, 9], [2, 9], [])


def test_steps_of_a_long_run_cost_no_fetch() -> None:
    log = MemoryLog(PLAN.split("\n") * 1000)
    reading = WITNESS.read(log.gated(WITNESS), log)
    assert (len(marks(reading)), log.fetches) == (1000, 0)


def test_a_refused_option_is_advice(read: Reader) -> None:
    (record,) = read(WITNESS, "unknown option 'nan-check-stride'; ignoring").records
    assert isinstance(record, Advice)
    assert record.text == "unknown option 'nan-check-stride'; ignoring"


def test_poisoned_allocations_are_read_and_give_nothing(read: Reader) -> None:
    """observed.md 19: with broken colour codes around."""
    line = "[0;35mDEBUG_ALLOC_POISON: Filling device f32 allocation (4 bytes) ordinal 0 [0m"
    reading = read(WITNESS, line)
    assert (reading.parsed, reading.records, reading.losses) == ([1], [], [])


@pytest.mark.parametrize(
    "line",
    [
        "MODULAR_DEBUG=op-log-level=TRACE,device-sync-mode,source-tracebacks",
        "export MODULAR_DEBUG=device-sync-mode",
        "+ MODULAR_DEBUG=device-sync-mode python serve.py",
        "$ CUDA_VISIBLE_DEVICES=0 MODULAR_DEBUG='device-sync-mode,nan-check' max serve --model x",
        'declare -x MODULAR_DEBUG="device-sync-mode"',
        'Environment="MODULAR_DEBUG=device-sync-mode"',
        "Environment: MODULAR_DEBUG=assert-level=all,device-sync-mode, A=1",
        "docker run --rm -e MODULAR_DEBUG=device-sync-mode image",
        "environ({'PATH': '/bin', 'MODULAR_DEBUG': 'op-log-level=TRACE,device-sync-mode'})",
        "MODULAR_DEVICE_CONTEXT_SYNC_MODE=true",
    ],
)
def test_echoes_of_a_setting_tell_the_mode(read: Reader, line: str) -> None:
    assert modes(read(WITNESS, line))["device_sync_mode"] is True


@pytest.mark.parametrize(
    "line",
    [
        "To get more accurate error information, set MODULAR_DEBUG=device-sync-mode.",
        "To get more accurate error information, set MODULAR_DEVICE_CONTEXT_SYNC_MODE=true.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
        "(for example, `Graph.debug.source_tracebacks = True` or `MODULAR_DEBUG=source-tracebacks`).",
        "MODULAR_DEVICE_CONTEXT_MEMORY_MANAGER_SIZE_PERCENT=0",
        "you could run with MODULAR_DEBUG=device-sync-mode",
    ],
)
def test_a_sentence_that_mentions_a_switch_sets_nothing(read: Reader, line: str) -> None:
    """It is understood, so no loss; and no head, so that the witness is not listed for it."""
    reading = read(WITNESS, line)
    assert (reading.records, reading.parsed, reading.losses) == ([], [], [])
    assert reading.not_mine == [1]


def test_launch_blocking_can_be_off(read: Reader) -> None:
    assert modes(read(WITNESS, "CUDA_LAUNCH_BLOCKING=0 python x.py")) == {"launch_blocking": False}
    assert modes(read(WITNESS, "CUDA_LAUNCH_BLOCKING=1 python x.py")) == {"launch_blocking": True}


def test_a_lower_case_level_is_no_mode(read: Reader) -> None:
    """MAX refuses it, nothing is logged."""
    assert modes(read(WITNESS, "MODULAR_DEBUG=op-log-level=trace")) == {}
    assert modes(read(WITNESS, "MODULAR_DEBUG=op-log-level=TRACE")) == {"op_log_level": "TRACE"}


@pytest.mark.parametrize(
    "line",
    [
        "CUDA_LAUNCH_BLOCKING=maybe",
        "MODULAR_DEBUG=/etc/modular",
        "NanCheckPass: checked some of 5 float kernel outputs (stride=20, graph @decoder)",
        "TypeError: Invalid log level (trace). Please use one of: ['NOTSET', 'TR",
    ],
)
def test_what_does_not_parse_is_a_counted_loss(read: Reader, line: str) -> None:
    reading = read(WITNESS, [line, line])
    (loss,) = reading.losses
    assert (loss.line, loss.count, loss.witness) == (1, 2, "max_modes")
    assert not reading.parsed


def test_other_programs_unknown_options_are_none_of_ours(read: Reader) -> None:
    reading = read(WITNESS, ["no such file; ignoring", "Invalid log level (x)"])
    assert (reading.parsed, reading.losses) == ([], [])
