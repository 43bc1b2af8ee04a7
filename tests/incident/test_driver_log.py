"""Roles of what the kernel driver logged, beside programs and alone (formats.md 3.20, 5)."""

from __future__ import annotations

import msgspec
import pytest

from analyzer.advice.next_steps import next_steps
from analyzer.incident.driver_links import pid_of
from analyzer.incident.driver_log import joined_hardware
from analyzer.incident.driver_messages import reading_of
from analyzer.model import Advice, FaultRecord, XidEvent
from analyzer.schema import FaultKind, Modes
from analyzer.tables.xids import by_number
from tests.incident.records import assign_roles, decide_trust

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS


def logged(
    name: str,
    kind: FaultKind,
    process: str = "python3 pid=7",
    time_ns: int | None = None,
    device: str | None = None,
) -> FaultRecord:
    return FaultRecord(
        source=1,
        process=process,
        line=1,
        last_line=1,
        block_first=1,
        text=name,
        witness="xid",
        kind=kind,
        site="driver_log",
        name=name,
        vendor="nvidia",
        device=device,
        time_ns=time_ns,
        clock=None if time_ns is None else "epoch" if time_ns > DAY_NS else "boot",
    )


def program(process: str = "Worker pid=7", time_ns: int | None = None, pid: int | None = None) -> FaultRecord:
    return FaultRecord(
        source=0,
        process=process,
        line=9,
        last_line=9,
        block_first=9,
        text="CUDA error",
        witness="c10",
        kind="illegal_address",
        site="sync",
        code=700,
        pid=pid,
        time_ns=time_ns,
        clock=None if time_ns is None else "epoch",
    )


XID_31 = logged("Xid 31", "illegal_address")
XID_43 = logged("Xid 43", "unknown")
XID_48 = logged("Xid 48", "ecc_error", process="GPU 0000:00:06")


def roles(*records: FaultRecord) -> list[str]:
    return [decision.role for decision in assign_roles(records)]


def test_a_software_message_beside_an_error_is_never_a_root() -> None:
    assert roles(XID_31, program()) == ["cascade", "root"]


def test_a_message_of_another_pid_has_nothing_to_do_with_it() -> None:
    other = logged("Xid 31", "illegal_address", process="python3 pid=8")
    assert roles(program(), other) == ["root", "bystander"]


def test_without_a_pid_in_the_log_the_message_supports_the_fault() -> None:
    assert roles(program(process=""), XID_31) == ["root", "cascade"]


def test_a_message_of_another_day_has_nothing_to_do_with_it() -> None:
    old = logged("Xid 31", "illegal_address", time_ns=NOW_NS - 3 * DAY_NS)
    assert roles(program(time_ns=NOW_NS), old) == ["root", "bystander"]


def test_whole_hours_between_two_logs_can_be_their_zones() -> None:
    shifted = logged("Xid 31", "illegal_address", time_ns=NOW_NS - 7 * 3600 * 10**9)
    assert roles(program(time_ns=NOW_NS), shifted) == ["root", "cascade"]
    later = logged("Xid 31", "illegal_address", time_ns=NOW_NS - 5400 * 10**9)
    assert roles(program(time_ns=NOW_NS), later) == ["root", "bystander"]


def test_a_pid_in_the_line_joins_where_the_process_key_has_none() -> None:
    (_, decision) = assign_roles([program(process="rank0", pid=7), XID_31])
    assert decision.reason.endswith("(by the same pid)")


def test_times_since_boot_are_not_compared_with_a_date() -> None:
    booted = logged("Xid 31", "illegal_address", time_ns=5 * 10**9)
    assert roles(program(time_ns=NOW_NS), booted) == ["root", "cascade"]


def test_alone_the_first_real_fault_is_the_root() -> None:
    """Xid 43 only cleans up."""
    assert roles(logged("Xid 43", "unknown", process="python3 pid=5"), XID_31, XID_43) == [
        "bystander",
        "root",
        "cascade",
    ]


def test_alone_hardware_goes_before_software() -> None:
    assert roles(XID_31, XID_48) == ["bystander", "root"]


def test_hardware_is_joined_to_the_fault_of_a_program() -> None:
    root = program()
    own = logged("Xid 48", "ecc_error")
    assert joined_hardware([root, XID_31, own], root) == [own]
    assert joined_hardware([root, XID_31], root) == []
    assert joined_hardware([root, XID_31, XID_48], root) == []


def test_hardware_of_another_day_is_not_joined() -> None:
    root = program(time_ns=NOW_NS)
    old = logged("Xid 48", "ecc_error", process="GPU 0000:00:06", time_ns=NOW_NS - 3 * DAY_NS)
    assert joined_hardware([root, old], root) == []


def test_trust_of_the_kernel_log() -> None:
    """It knows its GPU and the process, never the kernel."""
    trusts = [decide_trust(one, after_sticky=False, modes=Modes()).trust for one in (XID_31, XID_48)]
    assert trusts == ["late", "exact"]


@pytest.mark.parametrize(
    ("record", "reading"),
    [
        (XID_31, "software"),
        (XID_43, "secondary"),
        (XID_48, "hardware"),
        (logged("SXid 20034", "device_lost"), "hardware"),
        (logged("SXid 12028", "unknown"), "secondary"),
        (logged("Xid 999", "unknown"), "secondary"),
        (logged("page fault", "illegal_address"), "software"),
    ],
)
def test_readings(record: FaultRecord, reading: str) -> None:
    assert reading_of(record) == reading


@pytest.mark.parametrize(
    ("key", "pid"),
    [
        ("python3 pid=763", 763),
        ("pod-1/Worker pid=7 ip=10.0.0.1", 7),
        ("rank0", None),
        ("a pid=x", None),
        ("python3[76]", 76),
        ("a[x]", None),
    ],
)
def test_pid_of_a_process_key(key: str, pid: int | None) -> None:
    assert pid_of(key) == pid


XID_79 = logged("Xid 79", "device_lost")


@pytest.mark.parametrize("number", [48, 64, 74, 79, 94, 95, 119, 120])
def test_hardware_of_the_same_pid_is_the_root_of_a_cuda_error(number: int) -> None:
    row = by_number(number)
    assert row is not None
    assert roles(logged(f"Xid {number}", row.kind), program()) == ["root", "cascade"]
    assert roles(program(), logged(f"Xid {number}", row.kind)) == ["cascade", "root"]


def test_what_the_driver_cleans_up_then_is_a_cascade() -> None:
    assert roles(XID_79, program(), XID_43) == ["root", "cascade", "cascade"]


def test_hardware_of_another_pid_or_long_after_is_no_root() -> None:
    other = logged("Xid 79", "device_lost", process="python3 pid=8")
    assert roles(other, program()) == ["bystander", "root"]
    late = msgspec.structs.replace(logged("Xid 79", "device_lost", time_ns=NOW_NS + 300 * 10**9), source=0)
    assert roles(program(time_ns=NOW_NS), late) == ["root", "cascade"]


def test_hardware_does_not_explain_what_the_device_says_of_the_code() -> None:
    """A failed condition in a kernel, or memory that is used up, is of the program."""
    told = msgspec.structs.replace(program(), site="device", kind="device_assert", code=710)
    full = msgspec.structs.replace(program(), site="host", kind="out_of_memory", code=2)
    own = logged("Xid 48", "ecc_error")
    assert roles(own, told) == ["cascade", "root"]
    assert roles(own, full) == ["cascade", "root"]
    assert joined_hardware([own, told], told) == []


def test_the_verdict_of_the_driver_after_a_software_fault_is_no_hardware_fault() -> None:
    """A reset is asked for after an MMU fault too."""
    assert roles(XID_31, logged("Xid 154", "unknown"), program()) == ["cascade", "cascade", "root"]
    assert roles(XID_31, logged("Xid 154", "unknown")) == ["root", "cascade"]


def test_hardware_asks_for_no_run_of_the_program() -> None:
    advice = [Advice(source=0, line=1, text="x", command="CUDA_LAUNCH_BLOCKING=1")]
    steps = next_steps(XID_79, "proven", Modes(), advice, has_ops=True)
    assert [step.command.split(" ")[0] for step in steps] == ["nvidia-smi", "nvidia-smi"]


@pytest.mark.parametrize("number", [63, 92, 121])
def test_errors_that_were_corrected_explain_no_error(number: int) -> None:
    row = by_number(number)
    assert row is not None
    assert roles(logged(f"Xid {number}", row.kind), program()) == ["cascade", "root"]
    assert roles(logged(f"Xid {number}", row.kind)) == ["root"]


def test_alone_they_go_behind_a_fault_of_software() -> None:
    assert roles(logged("Xid 63", "ecc_error", process="GPU a"), XID_31) == ["bystander", "root"]


@pytest.mark.parametrize("name", ["Xid 45", "Xid 154", "SXid 12028", "Xid 145"])
def test_what_says_that_nothing_failed_is_no_root(name: str) -> None:
    """A clean-up, the driver's verdict, and events that are not fatal."""
    expected = "teardown" if name == "Xid 45" else "bystander"
    assert roles(logged(name, "unknown")) == [expected]


@pytest.mark.parametrize("name", ["Xid 43", "Xid 69", "Xid 32", "Xid 999"])
def test_what_follows_a_fault_shows_that_there_was_one(name: str) -> None:
    """Xid 43 is printed when an application's fault made its channel be reset."""
    assert roles(logged("Xid 45", "unknown"), logged(name, "unknown")) == ["cascade", "root"]


def caused_by(number: int, kind: FaultKind) -> FaultRecord:
    return msgspec.structs.replace(logged("Xid 45", kind), detail=XidEvent(caused_by=number))


def test_a_clean_up_that_names_its_cause_is_read_as_that_one() -> None:
    assert reading_of(caused_by(149, "device_lost")) == "hardware"
    assert reading_of(caused_by(31, "illegal_address")) == "software"
    assert roles(caused_by(31, "illegal_address")) == ["root"]
    assert roles(program(), caused_by(149, "device_lost")) == ["cascade", "root"]


def test_the_containment_of_a_bad_access_over_nvlink_is_no_memory_error() -> None:
    """Xid 94 beside Xid 137: H200, all ECC counters at zero."""
    peer, contained = logged("Xid 137", "illegal_address"), logged("Xid 94", "ecc_error")
    assert roles(contained, peer, program()) == ["cascade", "cascade", "root"]
    assert roles(contained, peer) == ["cascade", "root"]
    assert roles(contained, peer, logged("Xid 48", "ecc_error"), program())[0] == "root"


def test_a_clean_up_of_another_process_on_the_same_gpu_is_a_bystander() -> None:
    other = logged("Xid 43", "unknown", process="python3 pid=5", device="0000:06:00")
    assert roles(msgspec.structs.replace(XID_31, device="0000:06:00"), other) == ["root", "bystander"]


def test_corrected_errors_beside_an_error_say_that_they_harm_no_call() -> None:
    first, _ = assign_roles([logged("Xid 92", "ecc_error"), program()])
    assert first.reason == "errors that were corrected, or a repair: no call fails of it"


def test_messages_of_one_gpu_days_apart_are_two_events() -> None:
    late = logged("Xid 79", "device_lost", process="GPU a", time_ns=NOW_NS)
    early = logged("Xid 48", "ecc_error", process="GPU a", time_ns=NOW_NS - 9 * DAY_NS)
    assert roles(early, late) == ["root", "bystander"]
