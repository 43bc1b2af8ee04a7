"""ROCm's runtimes (formats.md 3.17)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, ModeRecord, Reading
from analyzer.witnesses.rocm import WITNESS
from tests.witnesses.conftest import Reader

FAULT = "Memory access fault by GPU node-2 (Agent handle: 0x55aa12) on address 0x7f1000. Reason: Unknown."
ABORT = "Callback: Queue 0x7fc2 aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: text. code: 0x2b"


def shader(name: str, pid: int = 110) -> str:
    return f":3:rocvirtual.cpp :3598: 7537580273765 us: [pid:{pid} tid: 0x7f00] ShaderName : {name}"


def the_fault(reading: Reading) -> FaultRecord:
    (fault,) = [record for record in reading.records if isinstance(record, FaultRecord)]
    return fault


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (FAULT, "illegal_address"),
        (FAULT.replace("0x7f1000.", "(nil)(may not be exact address)."), "illegal_address"),
        (FAULT.replace("Unknown", "DRAM ECC failure"), "ecc_error"),
        (FAULT.replace("Unknown", "Generic hang recovery"), "hang_timeout"),
        ("Memory critical error by agent node-1 (Agent handle: 0x5) on address 0x7. Reason: Freed.", "illegal_address"),
        ("HW Exception by GPU node-1 (Agent handle: 0x5ab48bbcc960) reason :GPU Hang", "hang_timeout"),
        ("HW Exception by GPU node-1 (Agent handle: 0x5ab48bbcc960) reason :ECC", "ecc_error"),
        (ABORT, "illegal_address"),
        ("Device::callbackQueue aborting with error : HSA_STATUS_ERROR_EXCEPTION: x code: 0x1016", "launch_failure"),
        (ABORT.replace("aborting", "Aborting").replace("MEMORY_FAULT", "OUT_OF_RESOURCES"), "out_of_memory"),
        ("Queue at 0x7f5c inactivated due to async error:\n\tHSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: x", "illegal_instruction"),
    ],
)  # fmt: skip
def test_kinds(read: Reader, text: str, kind: str) -> None:
    reading = read(WITNESS, text)
    fault = the_fault(reading)
    assert (fault.kind, fault.vendor, fault.device) == (kind, "amd", None)
    assert not reading.losses


def test_the_kernel_that_the_runtime_names_is_exact(read: Reader) -> None:
    text = f"{ABORT}\nKernel Name: _Z4rowsPf\nVGPU=0x5\n\tgrid=[65536, 1, 1], workgroup=[256, 1, 1], x=0"
    fault = the_fault(read(WITNESS, text))
    assert (fault.site, fault.kernel) == ("device", "_Z4rowsPf")
    assert fault.state is not None
    assert (fault.state.grid, fault.state.block) == ((65536, 1, 1), (256, 1, 1))


def test_a_profilers_kernel_name_is_none_of_ours(read: Reader) -> None:
    reading = read(WITNESS, "Kernel Name: gemm")
    assert (reading.records, reading.parsed, reading.not_mine) == ([], [], [1])


def test_the_last_launch_counts_if_kernels_ran_one_by_one(read: Reader) -> None:
    text = f"AMD_SERIALIZE_KERNEL=3 python x.py\n{shader('first')}\n{shader('second')}\n{FAULT}\n{shader('after')}"
    reading = read(WITNESS, text)
    assert the_fault(reading).kernel == "second"
    assert any(isinstance(r, ModeRecord) and r.name == "launch_blocking" and r.value for r in reading.records)


@pytest.mark.parametrize(
    "setting",
    [
        "For debugging consider passing AMD_SERIALIZE_KERNEL=3",
        "AMD_SERIALIZE_KERNEL=1 python x.py",
        "you can set AMD_SERIALIZE_KERNEL=3 to find the kernel",
        "",
    ],
)
def test_without_serialisation_nobody_is_named(read: Reader, setting: str) -> None:
    """A sentence is no setting, and level 1 waits before the kernel only."""
    reading = read(WITNESS, f"{setting}\n{shader('first')}\n{FAULT}")
    assert the_fault(reading).state is None
    assert not reading.losses


def test_of_several_processes_nobody_knows_whose_kernel_it_was(read: Reader) -> None:
    text = f"export AMD_SERIALIZE_KERNEL=3\n{shader('first')}\n{shader('second', 111)}\n{FAULT}"
    assert the_fault(read(WITNESS, text)).state is None


def test_a_text_of_the_family_that_does_not_parse_is_a_loss(read: Reader) -> None:
    (loss,) = read(WITNESS, "Memory access fault by GPU node-x").losses
    assert loss.line == 1


def names(reading: Reading) -> list[str | None]:
    return [record.kernel for record in reading.records if isinstance(record, FaultRecord)]


def test_two_queues_that_abort_together_leave_two_names(read: Reader) -> None:
    """Nothing tells which of the two faulted, nor whose packet follows."""
    other = ABORT.replace("0x7fc2", "0x7fc3")
    packet = "\tgrid=[65536, 1, 1], workgroup=[256, 1, 1], x=0"
    reading = read(WITNESS, f"{ABORT}\n{other}\nKernel Name: a\n{packet}\nKernel Name: b")
    assert names(reading) == ["a", "b"]
    assert all(
        one.state is not None and one.state.grid is None
        for one in reading.records
        if isinstance(one, FaultRecord)
    )


def test_a_runtime_that_walks_over_all_queues_names_several(read: Reader) -> None:
    assert names(read(WITNESS, f"{ABORT}\nKernel Name: a\nKernel Name: b\nKernel Name: a")) == ["a", "b"]


def test_a_name_belongs_to_the_report_above_it(read: Reader) -> None:
    other = ABORT.replace("MEMORY_FAULT", "EXCEPTION")
    assert names(read(WITNESS, f"{ABORT}\nKernel Name: a\n{other}\nKernel Name: b")) == ["a", "b"]
    assert names(read(WITNESS, f"{ABORT}\nKernel Name: a\n{other}")) == ["a", None]
    assert names(read(WITNESS, f"Kernel Name: a\n{ABORT}")) == ["a"]
