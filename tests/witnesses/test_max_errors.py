"""Errors of MAX: what was met where, and what each text proves."""

from __future__ import annotations

import time

import pytest

from analyzer.model import Advice, FaultRecord, ModeRecord, Reading
from analyzer.witnesses.max_errors import FETCHED_FAULTS, WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

CALL = "CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
HINT = "To get more accurate error information, set MODULAR_DEBUG=device-sync-mode."
OLD_HINT = "To get more accurate error information, set MODULAR_DEVICE_CONTEXT_SYNC_MODE=true."
TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/app/max_cases.py", line 57, in <module>
    main()
  File "/srv/app/max_cases.py", line 53, in main
    r = m.execute(x, w)[0]
        ^^^^^^^^^^^^^^^
  File "/opt/venv/lib/python3.12/site-packages/max/profiler/tracing.py", line 113, in wrapper
    return func(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^^^^"""
HEADS = """\
ValueError: An error occurred in kernel entry point named "__matmul_static_broadcast_to_gelu_cec3_async":
An error occurred in kernel named "__static_broadcast_to_gelu_mul_add_e8c805035e99b0a0":"""
LATE = "At max/mojo/max/gpu/host/_device_context_extras.mojo:163:17: " + CALL
FUSION = """\
Fusion info:
  Prologue (operandIndices=[0])
      ├── View
      │   ├── mo.static.broadcast_to : (!mo.tensor<[], f32, gpu:0>) -> !mo.tensor<[64, 64], f32, gpu:0>
      │   └── Elementwise
      │       └── mo.gelu : (!mo.tensor<[64, 64], f32, gpu:0>) -> !mo.tensor<[64, 64], f32, gpu:0>
      └── mo.reduce.softmax : (!mo.tensor<[64, 64], f32, gpu:0>) -> !mo.tensor<[64, 64], f32, gpu:0>"""
SOURCES = """\
Source Traceback:
  File "/srv/app/max_cases.py", line 57, in <module>
    main()
  File "/srv/app/max_cases.py", line 12, in norm_block
    return y * 0.5 + x
  File "/opt/venv/lib/python3.12/site-packages/max/graph/value.py", line 1158, in __mul__
    return ops.mul(self, rhs)

  File "/srv/app/max_cases.py", line 57, in <module>
    main()
  File "/srv/app/max_cases.py", line 39, in build
    x = ops.softmax(x)


Note: 2 distinct Python source locations contributed ops to this fused kernel. The source traceback for each \
location is above."""
LATE_LOG = f"loaded\n{TRACEBACK}\n{HEADS}\n{LATE}\n{HINT}\n\n{FUSION}\n\n\n{SOURCES}"
SERIALISED = (
    "/srv/app/kernels/badops.mojo:29:50 failed calling 'def[LITImmOrigin, ::Origin[False, $0]](*args: "
    "*::TypeList[::AnyType, ::SIMD[DType.int32, 1]]()) capturing thin -> None|d435f966eef879e5' on device "
    f"cuda:0 with error '{CALL}'"
)
SYNC_LOG = f"""\
loaded
{TRACEBACK}
ValueError: An error occurred in kernel entry point named "__matmul_static_broadcast_to_gelu_cec3_async":
An error occurred in kernel named "__custom__strided_gather":
{SERIALISED}

Fusion info:
  custom__strided_gather : (!mo.tensor<[4096], f32, gpu:0>) -> !mo.tensor<[4096], f32, gpu:0>


Source Traceback:
  File "/srv/app/max_cases.py", line 26, in build
    flat = ops.custom(name="strided_gather", device=dref, values=[flat],"""
RAISED_LOG = f"""\
{TRACEBACK}
{HEADS}
raising_op: table size mismatch: expected 64 got 4096

Fusion info:
  custom__raising_op : (!mo.tensor<[4096], f32, gpu:0>) -> !mo.tensor<[4096], f32, gpu:0>"""
OP_RECORD = [
    "[OP] COMPLETE custom__raising_op [id=8] ",
    "srv/app/max_cases.py:57:<module>",
    "graph/ops/custom.py:109:custom",
    ";target=gpu:0",
    "INFO::: MxNxK: 64x64x64",
]


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def the_fault(reading: Reading) -> FaultRecord:
    (fault,) = faults(reading)
    assert not reading.losses
    return fault


def modes(reading: Reading) -> dict[str, object]:
    return {record.name: record.value for record in reading.records if isinstance(record, ModeRecord)}


def line_of(log: str, text: str) -> int:
    return next(n for n, line in enumerate(log.split("\n"), start=1) if text in line)


def test_a_block_is_one_fault_at_its_cause(read: Reader) -> None:
    """The line is that of the cause, the block begins with the traceback; the kernel is the second name."""
    fault = the_fault(read(WITNESS, LATE_LOG))
    assert fault.line == line_of(LATE_LOG, "CUDA call failed")
    assert fault.block_first == 2
    assert fault.last_line == len(LATE_LOG.split("\n"))
    assert (fault.kind, fault.code, fault.name) == ("illegal_address", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert fault.kernel == "__static_broadcast_to_gelu_mul_add_e8c805035e99b0a0"
    assert fault.entry_point == "__matmul_static_broadcast_to_gelu_cec3_async"
    assert fault.text == LATE


def test_a_failed_call_in_a_kernel_block_was_met_by_the_launch(read: Reader) -> None:
    """Without sync mode the kernel named is the one whose launch met the error (observed.md 12)."""
    reading = read(WITNESS, LATE_LOG)
    assert the_fault(reading).site == "launch"
    assert the_fault(reading).async_hint is True
    assert modes(reading) == {"device_sync_mode": False, "source_tracebacks": True}


def test_every_line_of_a_block_is_accounted_for(read: Reader) -> None:
    reading = read(WITNESS, LATE_LOG)
    blank_after_cause = {n for n, line in enumerate(LATE_LOG.split("\n"), start=1) if not line}
    used = {*reading.parsed, *reading.continuation}
    assert used | blank_after_cause == set(range(2, len(LATE_LOG.split("\n")) + 1))


def test_stacks_fusion_and_python_frame_are_kept(read: Reader) -> None:
    """``python`` is the innermost frame that is not in an installed package."""
    fault = the_fault(read(WITNESS, LATE_LOG))
    assert [len(stack) for stack in fault.stacks] == [3, 2]
    assert fault.fusion is not None
    assert fault.fusion.name == "Prologue"
    assert fault.python is not None
    assert (fault.python.file, fault.python.line) == ("/srv/app/max_cases.py", 53)
    assert fault.device == "gpu:0"
    assert fault.location is not None
    assert fault.location.line == 163


def test_failed_calling_proves_serialised_launches(read: Reader) -> None:
    """The form ``failed calling ... on device`` is only printed in sync mode (observed.md 14, 20)."""
    reading = read(WITNESS, SYNC_LOG)
    fault = the_fault(reading)
    assert fault.site == "launch_serialised"
    assert fault.kernel == "__custom__strided_gather"
    assert fault.location is not None
    assert (fault.location.file, fault.location.line) == ("/srv/app/kernels/badops.mojo", 29)
    assert fault.device == "gpu:0"
    assert fault.async_hint is None
    assert modes(reading)["device_sync_mode"] is True


def test_a_bare_failed_call_was_met_by_a_synchronisation(read: Reader) -> None:
    """Nothing is named: a copy to the host met it (observed.md 13)."""
    log = f"{TRACEBACK}\nRuntimeError: {CALL}\n{HINT}"
    fault = the_fault(read(WITNESS, log))
    assert (fault.site, fault.kernel, fault.line, fault.block_first) == ("sync", None, 10, 1)
    assert fault.python is not None
    assert fault.async_hint is True


def test_a_missing_hint_is_not_known_rather_than_false(read: Reader) -> None:
    """The flag, switched on too late, removes the hint from a late report (observed.md 20)."""
    reading = read(WITNESS, f"{TRACEBACK}\nRuntimeError: {CALL}")
    assert the_fault(reading).async_hint is None
    assert "device_sync_mode" not in modes(reading)


def test_raised_text_is_the_cause(read: Reader) -> None:
    """Host code of an op raised: exact, and no code."""
    fault = the_fault(read(WITNESS, RAISED_LOG))
    assert (fault.kind, fault.site, fault.code) == ("kernel_raised", "host", None)
    assert fault.text == "raising_op: table size mismatch: expected 64 got 4096"
    assert fault.line == line_of(RAISED_LOG, "table size")


def test_raised_text_may_have_several_lines(read: Reader) -> None:
    log = f"{HEADS}\nfirst line\n  second line\n\nFusion info:\n  custom__x : (!mo.chain) -> !mo.chain"
    assert the_fault(read(WITNESS, log)).text == "first line\nsecond line"


def test_nan_report_names_the_value(read: Reader) -> None:
    """The kernel is the messenger; the label is what it looked at (observed.md 17)."""
    text = "NaN/Inf detected in ' map.iter.opaque %6' (!mo.tensor<[64, 64], f32, gpu:0>): 4096 NaN, 0 Inf"
    log = f"{HEADS}\n{text}\n"
    fault = the_fault(read(WITNESS, log))
    assert (fault.kind, fault.site, fault.label) == ("nan", "host", "map.iter.opaque %6")
    assert fault.device == "gpu:0"


MOJO = "oss/modular/mojo/stdlib/std/gpu/host/device_context.mojo:1991:17"
PTX = "CUDA call failed: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed)"
CAPTURE = (
    "RuntimeError: Failed to capture graph: preBackForCapture vmmCreate failed: "
    "CUDA call failed: CUDA_ERROR_INVALID_DEVICE (invalid device ordinal)"
)


@pytest.mark.parametrize(
    ("text", "kind", "code", "site"),
    [
        ("CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS", "illegal_address", 700, "sync"),
        ("CUDA call failed: an illegal memory access was encountered", "illegal_address", 700, "sync"),
        ("HIP call failed: hipErrorIllegalAddress", "illegal_address", 700, "sync"),
        (f"At open-source/max/Mojo/device_context.mojo:1991:17: {CALL}", "illegal_address", 700, "sync"),
        ("CUDA call failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)", "out_of_memory", 2, "host"),
        ("CUDA call failed: CUDA_ERROR_OF_TOMORROW (text)", "unknown", None, "sync"),
        (f"Unhandled exception caught during execution: At {MOJO}: {PTX}", "no_kernel_image", 218, "host"),
        (CAPTURE, "invalid_argument", 101, "host"),
        (f"At {MOJO}: MAX doesn't support your current NVIDIA GPU driver. ", "configuration", None, "host"),
        ("Unhandled exception caught during execution: index out of range", "host_abort", None, "host"),
    ],
)
def test_bare_forms(read: Reader, text: str, kind: str, code: int | None, site: str) -> None:
    """All forms of formats.md 3.10. An error of the call itself (class A) was raised by the host."""
    fault = the_fault(read(WITNESS, text))
    assert (fault.kind, fault.code, fault.site) == (kind, code, site)


def test_vendor_follows_the_error_name(read: Reader) -> None:
    assert the_fault(read(WITNESS, "HIP call failed: hipErrorLaunchFailure")).vendor == "amd"
    assert the_fault(read(WITNESS, CALL)).vendor == "nvidia"


@pytest.mark.parametrize("hint", [HINT, OLD_HINT])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_hints_are_advice_and_never_faults(read: Reader, hint: str, times: int) -> None:
    """They repeat up to three times; the last line of a traceback is then no cause (formats.md 3.10)."""
    reading = read(WITNESS, "\n".join([f"RuntimeError: {CALL}", *[hint] * times]))
    assert the_fault(reading).text == CALL
    (advice,) = [record for record in reading.records if isinstance(record, Advice)]
    assert hint.startswith(f"To get more accurate error information, set {advice.command}")
    assert len(reading.parsed) == times + 1


def test_a_hint_alone_is_no_fault(read: Reader) -> None:
    assert not faults(read(WITNESS, HINT))


def test_sentence_about_source_tracebacks_says_that_they_are_off(read: Reader) -> None:
    sentence = (
        "To see the Python source location of this op, run again with the `max-debug.source-tracebacks` "
        "config key enabled (or `MODULAR_DEBUG=source-tracebacks`)."
    )
    log = f"{HEADS}\n{LATE}\n\n{FUSION}\n\n\n{sentence}"
    reading = read(WITNESS, log)
    assert modes(reading)["source_tracebacks"] is False
    assert the_fault(reading).last_line == len(log.split("\n"))


def test_error_glued_to_a_progress_bar_is_read(read: Reader) -> None:
    """formats.md 7: the bar has no line end."""
    bar = "Capturing graphs:  31%|███▌      | 16/51 [00:27<00:00,  1.09it/s]"
    log = LATE_LOG.replace("ValueError: An error", f"{bar}ValueError: An error")
    fault = the_fault(read(WITNESS, log))
    assert fault.kernel == "__static_broadcast_to_gelu_mul_add_e8c805035e99b0a0"
    assert fault.block_first == 2
    bare = the_fault(read(WITNESS, f"{bar}RuntimeError: {CALL}"))
    assert bare.text == CALL


@pytest.mark.parametrize("after", range(1, len(LATE_LOG.split("\n"))))
def test_lines_of_another_writer_do_not_break_a_block(read: Reader, after: int) -> None:
    """An op record between any two lines: cause, kernel, stacks and frame stay the same."""
    lines = LATE_LOG.split("\n")
    plain = the_fault(read(WITNESS, lines))
    mixed = the_fault(read(WITNESS, [*lines[:after], *OP_RECORD, *lines[after:]]))
    for field in ("text", "kernel", "entry_point", "stacks", "fusion", "python", "site", "async_hint"):
        assert getattr(mixed, field) == getattr(plain, field), field


def test_op_record_before_a_raised_text_is_not_the_cause(read: Reader) -> None:
    lines = RAISED_LOG.split("\n")
    at = line_of(RAISED_LOG, "table size") - 1
    fault = the_fault(read(WITNESS, [*lines[:at], *OP_RECORD, *lines[at:]]))
    assert fault.text.startswith("raising_op")
    assert fault.line == at + 1 + len(OP_RECORD)


@pytest.mark.parametrize("log", [LATE_LOG, SYNC_LOG, RAISED_LOG], ids=["late", "sync", "raised"])
def test_a_log_cut_anywhere_is_read(read: Reader, log: str) -> None:
    """Once the kernel is named there is a fault; its kind is unknown until the cause is there."""
    lines = log.split("\n")
    named, cause = line_of(log, "in kernel named"), the_fault(read(WITNESS, log)).line
    for cut in range(len(lines)):
        reading = read(WITNESS, lines[:cut])
        found = faults(reading)
        assert len(found) == (cut >= named - 1), cut
        assert {*reading.parsed, *reading.continuation} <= set(range(1, cut + 1))
        if named <= cut < cause:
            assert found[0].kind == "unknown"
        if cut >= cause:
            assert found[0].line == cause


def test_a_line_cut_in_the_middle_is_read_or_lost_but_counted(read: Reader) -> None:
    for cut in range(1, len(LATE)):
        reading = read(WITNESS, LATE[:cut])
        gated = any(gate in LATE[:cut] for gate in WITNESS.gates)
        assert len(reading.records) + len(reading.losses) == gated, LATE[:cut]


def test_the_same_block_twice_is_two_faults(read: Reader) -> None:
    """Which of them counts is decided later."""
    found = faults(read(WITNESS, f"{LATE_LOG}\n{LATE_LOG}"))
    assert [fault.kernel for fault in found] == [found[0].kernel] * 2
    assert found[1].block_first > found[0].last_line


def test_a_hundred_thousand_repeats_cost_no_fetch_and_are_counted() -> None:
    """Bodies are fetched for the first failures of a process only; the rest is folded."""
    log = MemoryLog([f"RuntimeError: {CALL}", HINT] * 100_000)
    frame = log.gated(WITNESS)
    log.lines = log.lines[:200]
    began = time.process_time()
    reading = WITNESS.read(frame, log)
    assert time.process_time() - began < 20
    found = faults(reading)
    assert log.fetches <= 2 * FETCHED_FAULTS
    assert len(found) <= FETCHED_FAULTS + 1
    assert sum(fault.count for fault in found) == 100_000
    assert found[-1].last_line == 199_999 + 1
    assert len(reading.parsed) == 200_000


def test_repeated_blocks_are_folded_after_the_first(read: Reader) -> None:
    found = faults(read(WITNESS, f"{RAISED_LOG}\n" * (FETCHED_FAULTS + 30)))
    assert len(found) == FETCHED_FAULTS
    assert found[-1].count == 31


def test_processes_are_read_apart() -> None:
    """Two tagged writers, line by line: each has its own block."""
    lines = LATE_LOG.split("\n")
    texts = [line for line in lines for _ in range(2)]
    log = MemoryLog(texts, ["a", "b"] * len(lines))
    found = faults(WITNESS.read(log.gated(WITNESS), log))
    assert sorted(fault.process for fault in found) == ["a", "b"]
    assert [len(fault.stacks) for fault in found] == [2, 2]


def test_a_json_record_with_a_whole_traceback_is_read(read: Reader) -> None:
    """A structured log puts all lines of an error into one."""
    reading = read(WITNESS, ["one", LATE_LOG, "three"])
    fault = the_fault(reading)
    assert (fault.line, fault.block_first, fault.last_line) == (2, 2, 2)
    assert len(fault.stacks) == 2
    assert fault.python is not None


def test_an_unreadable_tree_is_a_loss_and_the_fault_stays(read: Reader) -> None:
    log = f"{HEADS}\n{LATE}\n\nFusion info:\n  (((\n\n"
    reading = read(WITNESS, log)
    assert faults(reading)[0].fusion is None
    (loss,) = reading.losses
    assert (loss.line, loss.witness) == (6, "max_errors")


def test_traceback_of_an_earlier_handled_error_is_not_taken(read: Reader) -> None:
    """It ended with its own exception."""
    log = f"{TRACEBACK}\nValueError: handled\ncarrying on\nRuntimeError: {CALL}"
    fault = the_fault(read(WITNESS, log))
    assert fault.block_first == fault.line
    assert fault.python is None


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred in kernel update of the host",
        "NaN/Inf detected in gradients",
        "MODULAR_DERIVED_PATH=/x",
    ],
)
def test_other_programs_words_are_neither_fault_nor_used(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert not reading.records
    assert not reading.parsed
