"""When a message of the kernel driver may explain the error of a program (formats.md 3.20, 5.7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from analyzer.incident.driver_links import Links, names_program
from analyzer.incident.driver_log import is_joined_by_time
from analyzer.model import FaultRecord
from analyzer.tables.xids import bus_of
from tests.incident.records import assign_roles, at, fault

NOON = datetime(2026, 6, 24, 12, tzinfo=UTC).timestamp()
NOON_OF_YEAR = datetime(1970, 6, 24, 12, tzinfo=UTC).timestamp()
GPU_A, GPU_B = "0000:3b:00", "0000:9b:00"


def message(name: str = "Xid 48", kind: str = "ecc_error", **more: Any) -> FaultRecord:
    """A message of a kernel log in a second input, about a whole GPU."""
    known = {"source": 1, "site": "driver_log", "witness": "xid", "name": name, "process": f"GPU {GPU_A}"}
    return fault(3, kind, **{**known, "device": GPU_A, "vendor": "nvidia", **more})


def program(**more: Any) -> FaultRecord:
    return fault(9, **{"code": 700, **more})


def linked(one: FaultRecord, root: FaultRecord, *others: FaultRecord) -> bool | None:
    return Links([one, root, *others], root).of(one).linked


def root_of(*records: FaultRecord) -> FaultRecord:
    roles = [decision.role for decision in assign_roles(records)]
    return records[roles.index("root")]


def test_two_texts_in_one_analysis_are_no_link() -> None:
    """An 8-GPU host: the card with the memory error need not be the one of the program."""
    error, ecc = program(), message()
    assert linked(ecc, error) is None
    assert root_of(error, ecc) is error
    (_, decision) = assign_roles([error, ecc])
    assert (decision.role, decision.reason) == ("bystander", "no pid, GPU or time links it with this error")


def test_seconds_since_the_start_of_a_machine_are_no_time_of_another_input() -> None:
    assert linked(message(**at(9310.5, "boot")), program(**at(9311, "boot"))) is None


def test_a_pid_is_a_link_whatever_the_gpu() -> None:
    error = program(process="EngineCore pid=64120")
    ecc = message(process="python3 pid=64120")
    assert root_of(error, ecc) is ecc


def test_a_pid_of_the_host_speaks_against_another_one() -> None:
    ecc = message(process="python3 pid=4711", **at(NOON))
    assert linked(ecc, program(process="EngineCore pid=64120", **at(NOON + 1))) is False


@pytest.mark.parametrize("process", ["EngineCore pid=198", "vllm-1/EngineCore pid=64120"])
def test_in_a_container_another_pid_proves_nothing(process: str) -> None:
    """A small pid, or a tag of the container's runtime: the kernel log counts otherwise."""
    ecc = message(process="VLLM::EngineCor pid=71221", **at(NOON))
    assert linked(ecc, program(process=process)) is None
    assert linked(ecc, program(process=process, **at(NOON + 1))) is True
    assert linked(ecc, program(process=process, **at(NOON + 300))) is None


@pytest.mark.parametrize("name", ["python3", "pt_main_thread", "blender"])
def test_a_time_links_no_other_pid_whose_name_is_not_that_of_the_program(name: str) -> None:
    """It may be the program, seen from outside its container: a hint, and no more."""
    ecc = message(process=f"{name} pid=71221", **at(NOON))
    root = program(code=719, kind="launch_failure", process="EngineCore pid=198", **at(NOON + 1))
    link = Links([ecc, root], root).of(ecc)
    assert (link.linked, link.near) == (None, True)
    assert root_of(root, ecc) is root


def test_a_pid_of_a_system_log_is_that_of_a_service_and_not_of_its_children() -> None:
    ecc = message(process="VLLM::EngineCor pid=71221", **at(NOON))
    assert linked(ecc, program(process="vllm[71200]", **at(NOON + 1))) is True
    assert linked(ecc, program(process="vllm[71200]")) is None


@pytest.mark.parametrize(
    ("name", "process", "same"),
    [
        ("VLLM::EngineCor", "EngineCore_DP0 pid=7", True),
        ("VLLM::Worker_TP", "vllm-1/Worker_TP1 pid=7", True),
        ("llama-server", "llama-server[7]", True),
        ("python3", "python3[7]", False),
        ("node", "EngineCore_DP0 pid=7", False),
        ("sh", "shard pid=7", False),
    ],
)
def test_the_name_that_the_kernel_cuts_names_a_program(name: str, process: str, same: bool) -> None:
    assert names_program(name, process) is same


def lost(**more: Any) -> FaultRecord:
    return message("Xid 79", "device_lost", **more)


def test_a_time_alone_makes_hardware_the_root_of_an_error_that_says_nothing_of_its_own() -> None:
    bus, error = lost(**at(NOON)), program(code=719, kind="launch_failure", **at(NOON + 1))
    assert root_of(error, bus) is bus
    assert is_joined_by_time([error, bus], bus)


@pytest.mark.parametrize("passed", [61, 7 * 3600 + 1])
def test_a_time_alone_is_a_minute_and_no_guess_of_a_zone(passed: float) -> None:
    bus, error = lost(**at(NOON)), program(code=719, kind="launch_failure", **at(NOON + passed))
    assert root_of(error, bus) is error


@pytest.mark.parametrize(
    "kind", ["illegal_address", "misaligned_address", "invalid_address_space", "illegal_instruction"]
)
def test_a_time_alone_accuses_no_gpu_of_what_code_did(kind: str) -> None:
    bus, error = lost(**at(NOON)), program(code=None, kind=kind, **at(NOON + 1))
    assert root_of(error, bus) is error
    decisions = {one.role: one.reason for one in assign_roles([error, bus])}
    assert decisions["bystander"] == "at the same time, which alone does not link it with this error"


def test_a_certain_link_makes_hardware_the_root_whatever_the_error() -> None:
    ecc, error = message(process="python3 pid=64120"), program(process="EngineCore pid=64120")
    assert root_of(error, ecc) is ecc
    assert not is_joined_by_time([error, ecc], ecc)


def test_a_message_with_the_programs_pid_tells_its_time_in_a_log_that_counts_from_the_start() -> None:
    """The same card had a memory error a day before, in the run of somebody else."""
    error = program(process="Worker pid=64120", **at(NOON))
    own = message("Xid 31", "illegal_address", process="python3 pid=64120", **at(90_000, "boot"))
    assert linked(message(**at(100, "boot")), error, own) is False
    assert linked(message(**at(89_990, "boot")), error, own) is True


def test_a_message_of_another_vendors_driver_is_of_another_gpu() -> None:
    ras = message("RAS uncorrectable error", vendor="amd", **at(NOON))
    assert linked(ras, program(vendor="nvidia", **at(NOON + 1))) is False
    assert linked(ras, program(vendor="amd", **at(NOON + 1))) is True


def test_a_small_pid_that_the_kernel_log_has_too_is_of_the_host() -> None:
    own = message("Xid 43", "unknown", process="python3 pid=198", device=None)
    other = message(process="python3 pid=199", **at(NOON))
    assert linked(other, program(process="Worker pid=198", **at(NOON)), own) is False


def test_a_message_with_the_programs_pid_names_its_gpu() -> None:
    error = program(process="Worker pid=64120")
    removed = message("Xid 45", "unknown", process="python3 pid=64120")
    assert linked(message(), error, removed) is True
    assert linked(message(device=GPU_B), error, removed) is False


def test_memory_errors_kept_to_another_program_do_not_reach_this_one() -> None:
    error = program(process="Worker pid=64120")
    removed = message("Xid 45", "unknown", process="python3 pid=64120")
    contained = message("Xid 94", process="other pid=64999")
    assert linked(contained, error, removed) is False


def test_nvlink_is_told_by_the_gpu_at_its_other_end() -> None:
    error = program(process="Worker pid=64120", **at(NOON))
    removed = message("Xid 45", "unknown", process="python3 pid=64120", **at(NOON))
    assert linked(message("Xid 149", "device_lost", device=GPU_B, **at(NOON)), error, removed) is True


def test_an_error_that_names_its_gpu_is_of_that_one_only() -> None:
    error = program(text="CUDA error on device 00000000:3B:00.0")
    assert linked(message(), error) is True
    assert linked(message(device=GPU_B), error) is False


@pytest.mark.parametrize(("passed", "expected"), [(1, True), (590, True), (-30, True), (-90, None)])
def test_a_close_time_is_a_link_if_the_message_came_first(passed: float, expected: bool | None) -> None:
    ecc = message(source=0, **at(NOON))
    assert linked(ecc, program(**at(NOON + passed))) is expected


@pytest.mark.parametrize(
    ("passed", "expected"), [(7 * 3600 + 20, True), (7 * 3600 + 400, None), (5400, False)]
)
def test_whole_hours_can_be_a_zone_but_link_only_to_the_minute(passed: float, expected: bool | None) -> None:
    assert linked(message(**at(NOON)), program(**at(NOON + passed))) is expected


def test_a_clock_without_a_year_is_compared_with_one_that_has_it() -> None:
    assert linked(message(**at(NOON)), program(**at(NOON_OF_YEAR + 1, "no_year"))) is True
    assert linked(message(**at(NOON)), program(**at(NOON_OF_YEAR + 9 * 86_400, "no_year"))) is False
    assert linked(message(**at(NOON)), program(**at(43_201, "no_date"))) is None


def test_the_line_above_tells_when_an_error_without_a_stamp_happened() -> None:
    error = program(above_ns=int((NOON_OF_YEAR - 1) * 1e9), above_clock="no_year")
    assert linked(message(**at(NOON)), error) is True


def test_an_error_between_two_messages_of_one_input_is_of_their_time() -> None:
    """The kernel's lines and the program's were written as they came."""
    lost = message("Xid 79", "device_lost", source=0, **at(NOON))
    removed = fault(
        20, "unknown", site="driver_log", witness="xid", name="Xid 45", process="a pid=5", **at(NOON + 2)
    )
    assert linked(lost, program(), removed) is True
    assert linked(lost, program()) is None


@pytest.mark.parametrize(
    ("kind", "code", "number", "expected"),
    [
        ("ecc_error", 214, 48, True),
        ("ecc_error", 214, 79, None),
        ("device_lost", None, 79, True),
        ("configuration", 100, 79, True),
        ("unknown", 999, 79, None),
        ("ecc_error", 220, 74, True),
        ("illegal_address", 700, 79, None),
    ],
)
def test_a_program_that_tells_of_hardware_itself_is_believed(
    kind: str, code: int | None, number: int, expected: bool | None
) -> None:
    logged = "ecc_error" if number == 48 else "device_lost"
    assert linked(message(f"Xid {number}", logged), program(kind=kind, code=code)) is expected


@pytest.mark.parametrize("device", ["0000:3b:00", "0000:3B:00.0", "00000000:3b:00.0", "3b:00.0"])
def test_forms_of_one_pci_address(device: str) -> None:
    assert bus_of(device) == "3b:00"


def test_a_leap_day_is_compared_as_well() -> None:
    leap = datetime(2028, 2, 29, 12, tzinfo=UTC).timestamp()
    first_of_march = datetime(1970, 3, 1, 12, tzinfo=UTC).timestamp()
    assert linked(message(**at(leap)), program(**at(first_of_march + 1, "no_year"))) is True
