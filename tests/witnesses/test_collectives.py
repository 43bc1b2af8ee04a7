"""NCCL and PyTorch's watchdog over it (formats.md 3.6, 3.7)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import pytest

from analyzer.model import Advice, CollectiveState, FaultRecord
from analyzer.witnesses.nccl import WITNESS as NCCL
from analyzer.witnesses.process_group_nccl import WITNESS as GROUP
from tests.witnesses.conftest import Reader

TIMEOUT = (
    "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1530, OpType=ALLREDUCE, "
    "NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)
GROUP_TAG = "[PG ID 0 PG GUID 0(default_pg) Rank 2]"


def test_a_timeout_tells_rank_sequence_and_operation(read: Reader) -> None:
    fault, state = read(GROUP, TIMEOUT).records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.rank, fault.met) == ("hang_timeout", 2, True)
    assert isinstance(state, CollectiveState)
    assert (state.sequence, state.operation, state.timeout_ms) == (1530, "ALLREDUCE", 600000)
    assert state.elements == 4096


@pytest.mark.parametrize(
    "text",
    [
        f"{GROUP_TAG}  failure detected by watchdog at work sequence id: 53 PG status: last enqueued work: 54, last completed work: 52",
        "[PG 1 Rank 2] Timeout at NCCL work: 53, last enqueued NCCL work: 54, last completed NCCL work: 52.",
        "[PG 1 Rank 2] Exception (either an error or timeout) detected by watchdog at work: 53, last enqueued NCCL work: 54, last completed NCCL work: 52.",
    ],
)  # fmt: skip
def test_old_and_new_forms_of_how_far_a_rank_came(read: Reader, text: str) -> None:
    (state,) = read(GROUP, text).records
    assert isinstance(state, CollectiveState)
    assert (state.rank, state.enqueued, state.completed, state.sequence) == (2, 54, 52, 53)


@pytest.mark.parametrize(
    ("tag", "group"),
    [(GROUP_TAG, "PG ID 0 PG GUID 0(default_pg)"), ("[PG 1 Rank 2]", "PG 1"), ("[Rank 2]", "")],
)
def test_the_group_of_a_collective_is_known_without_its_rank(read: Reader, tag: str, group: str) -> None:
    """Sequence numbers count within one group."""
    _, state = read(GROUP, TIMEOUT.replace("[Rank 2]", tag)).records
    assert isinstance(state, CollectiveState)
    assert (state.group, state.rank) == (group, 2)


def test_the_exception_that_repeats_the_timeout_is_the_same_fault(read: Reader) -> None:
    again = f"{GROUP_TAG} Process group watchdog thread terminated with exception: {TIMEOUT}"
    faults = [r for r in read(GROUP, f"{TIMEOUT}\n{again}").records if isinstance(r, FaultRecord)]
    assert [(fault.count, fault.last_line) for fault in faults] == [(2, 2)]


@pytest.mark.parametrize("who", [f"{GROUP_TAG} Process group", "[Rank 2] NCCL"])
def test_a_cuda_error_was_only_met_by_the_watchdog(read: Reader, who: str) -> None:
    text = f"{who} watchdog thread terminated with exception: CUDA error: misaligned address"
    (fault,) = read(GROUP, text).records
    assert isinstance(fault, FaultRecord)
    assert (fault.code, fault.kind, fault.met, fault.rank) == (716, "misaligned_address", True, 2)


def test_a_dead_peer_can_end_the_watchdog(read: Reader) -> None:
    text = f"{GROUP_TAG} Process group watchdog thread terminated with exception: NCCL error: remote process exited"
    (fault,) = read(GROUP, text).records
    assert isinstance(fault, FaultRecord)
    assert fault.kind == "peer_lost"


def test_the_flight_recorder_is_advised_once(read: Reader) -> None:
    text = "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled."
    (advice,) = read(GROUP, f"{text}\n{text}").records
    assert isinstance(advice, Advice)
    assert advice.command is not None
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in advice.command


WRITER = "node7:4410:4522 [1] misc/socket.cc:518 (ncclRecv) NCCL WARN "


@pytest.mark.parametrize(
    "words", ["Cuda failure 700 '{}'", "Cuda failure '{}'", "Cuda failure 700", "Cuda failure {}"]
)
def test_nccl_only_looks_at_the_device(read: Reader, words: str) -> None:
    text = WRITER + words.format("an illegal memory access was encountered")
    if words == "Cuda failure 700":
        assert read(NCCL, text).losses
        return
    (fault,) = read(NCCL, text).records
    assert isinstance(fault, FaultRecord)
    assert (fault.code, fault.met, fault.device, fault.pid) == (700, True, "gpu:1", 4410)


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        ("remote process exited or there was a network error", "peer_lost", "ncclRemoteError"),
        ("unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "library_status", "ncclUnhandledCudaError"),
        ("internal error - please report this issue to the NCCL developers", "library_status", "ncclInternalError"),
        ("invalid usage", "configuration", "ncclInvalidUsage"),
        ("timeout", "hang_timeout", "ncclTimeout"),
    ],
)  # fmt: skip
def test_result_strings(read: Reader, words: str, kind: str, name: str) -> None:
    for text in (f"NCCL error: {words}", f"NCCL error in: /p/x.hpp:2, {words}, NCCL version 2.21.5"):
        (fault,) = read(NCCL, text).records
        assert isinstance(fault, FaultRecord)
        assert (fault.kind, fault.name) == (kind, name)


def test_the_last_error_names_what_nccl_met(read: Reader) -> None:
    text = (
        "NCCL error in: /p/x.hpp:2, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 716 'misaligned address'\nx"
    )  # fmt: skip
    reading = read(NCCL, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.code, fault.last_line, reading.continuation) == (716, 4, [2, 3, 4])


def test_a_warning_about_no_failure_is_understood_and_no_fault(read: Reader) -> None:
    reading = read(NCCL, WRITER + "NET/Plugin: could not find a plugin")
    assert (reading.records, reading.parsed, reading.losses) == ([], [1], [])


def test_memory_that_nccl_could_not_get_is_told_by_another_witness(read: Reader) -> None:
    reading = read(NCCL, WRITER + "Failed to CUDA calloc 4194304 bytes")
    assert (reading.records, reading.not_mine) == ([], [1])


OPTIONS = (
    ", TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), "
    "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[20, 10]{OPTIONS}), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=REDUCE, TensorShape=[20, 10]{OPTIONS}).Collectives differ in the following aspects: Op type: ALLREDUCEvs REDUCE",
            "rank 0 in ALLREDUCE of [20, 10] (number 7) and rank 1 in REDUCE of [20, 10] (number 7)",
        ),
        (
            f"Rank 26 is running collective: CollectiveFingerPrint(SequenceNumber=68, OpType=BROADCAST, TensorShape=[1]{OPTIONS}), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=51OpType=BROADCAST).",
            "rank 26 in BROADCAST of [1] (number 68) and rank 1 in BROADCAST (number 51)",
        ),
        (
            f"Rank 0 is running inconsistent collective: CollectiveFingerPrint(OpType=BROADCAST, TensorShape=[34112]{OPTIONS}",
            "rank 0 in BROADCAST of [34112]",
        ),
    ],
)  # fmt: skip
def test_pytorch_compares_what_the_ranks_are_about_to_do(read: Reader, text: str, says: str) -> None:
    """Full, with a cut second print, and from before PyTorch 1.13."""
    reading = read(GROUP, f"RuntimeError: Detected mismatch between collectives on ranks. {text}")
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.text) == ("input_check", f"the ranks are in different collectives: {says}")
    assert not reading.losses


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "NET/IB : req 0/1 tag 0 peer 10.0.0.6<58683> collective mismatch error, local size 496640 remote size 65536",
            "configuration",
        ),
        ("nvmlDeviceGetHandleByPciBusId() failed: GPU is lost", "device_lost"),
    ],
)
def test_warnings_that_name_a_cause(read: Reader, message: str, kind: str) -> None:
    (fault,) = read(NCCL, f"node7:4410:4522 [1] transport/net_ib.cc:1038 NCCL WARN {message}").records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.met) == (kind, False)


def test_a_full_shared_memory_is_no_error_of_the_device(read: Reader) -> None:
    text = [
        "NCCL error in: ../ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        "Last error:",
        "Error while creating shared memory segment /dev/shm/nccl-8R6BBv (size 9637888)",
    ]
    (fault,) = read(NCCL, text).records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.met, fault.last_line) == ("configuration", False, 4)
