"""Roles of what the kernel driver logged, beside programs and alone (formats.md 3.20, 5)."""

from __future__ import annotations

import msgspec
import pytest

from analyzer.faults.kernel_log import joined_hardware, pid_of, reading_of
from analyzer.faults.roles import assign_roles
from analyzer.faults.trust import decide_trust
from analyzer.faults.xids import by_number
from analyzer.model import Advice, FaultRecord
from analyzer.schema import FaultKind, Modes
from analyzer.suspects.next_steps import next_steps

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS


def logged(
    name: str, kind: FaultKind, process: str = "python3 pid=7", time_ns: int | None = None
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
        site="kernel_log",
        name=name,
        vendor="nvidia",
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
    assert joined_hardware([root, XID_31, XID_48], root) == [XID_48]
    assert joined_hardware([root, XID_31], root) == []


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


@pytest.mark.parametrize("number", [48, 63, 64, 74, 79, 92, 94, 95, 119, 120])
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
    assert roles(XID_48, told) == ["cascade", "root"]
    assert roles(XID_48, full) == ["cascade", "root"]


def test_the_verdict_of_the_driver_after_a_software_fault_is_no_hardware_fault() -> None:
    """A reset is asked for after an MMU fault too."""
    assert roles(XID_31, logged("Xid 154", "device_lost"), program()) == ["cascade", "cascade", "root"]


def test_hardware_asks_for_no_run_of_the_program() -> None:
    advice = [Advice(source=0, line=1, text="x", command="CUDA_LAUNCH_BLOCKING=1")]
    steps = next_steps(XID_79, "proven", Modes(), advice, has_ops=True)
    assert [step.command.split(" ")[0] for step in steps] == ["nvidia-smi", "nvidia-smi"]
