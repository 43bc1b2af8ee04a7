"""GPU core dumps, as the driver reports them (observed.md 24)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, ModeRecord, Reading
from analyzer.witnesses.coredump import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

DUMP = """\
[23:37:28.380823] coredump: Starting GPU coredump generation
[23:37:28.380920] coredump: SM 1/132 has finished state collection
[23:37:28.381359] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)
[23:37:28.381363] coredump:   - Device: 0
[23:37:28.381366] coredump:   - SM: 127
[23:37:28.381368] coredump:   - Warp: 3
[23:37:28.381370] coredump:   - PC 0x7feecf7cfe40
[23:37:28.381560] coredump: Stack trace (lane masks: active 0xFFFFFFFF, valid 0xFFFFFFFF):
[23:37:28.381566] coredump:   #0\t0x7feecf7cfe70\tmojo_pkg_5af0abf52ac370383650e9b_a9897f481f490ea6
[23:37:28.382188] coredump: Device 1/1 has finished state collection
[23:37:28.382286] coredump: Calculating ELF file layout
[23:37:28.382422] coredump: ELF file layout calculated
[23:37:28.382426] coredump: Writing ELF file to /var/crash/core_2185.nvcudmp
[23:37:28.382451] coredump: Current working directory is /srv/app
[23:37:28.382536] coredump: Writing out global memory (68608 bytes)
[23:37:28.383153] coredump: 5%...
[23:37:28.383274] coredump: Writing out device table
[23:37:28.383541] coredump: Finalizing
[23:37:28.383566] coredump: Writing done
[23:37:28.383570] coredump: All done (took 00s)"""
LINES = DUMP.split("\n")


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_a_dump_is_one_fault_at_the_exception(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, DUMP))
    assert (fault.line, fault.block_first, fault.last_line) == (3, 1, 20)
    assert (fault.kind, fault.site, fault.device, fault.count) == ("illegal_address", "device", "gpu:0", 1)
    assert fault.label == "SM 127, warp 3"


def test_the_device_names_the_kernel(read: Reader) -> None:
    """Symbol as printed; the PC is that of the exception, not of the frame."""
    (fault,) = faults(read(WITNESS, DUMP))
    assert fault.state is not None
    assert fault.kernel == fault.state.kernel == "mojo_pkg_5af0abf52ac370383650e9b_a9897f481f490ea6"
    assert (fault.state.pc, fault.state.device) == ("0x7feecf7cfe40", 0)
    assert fault.state.exception == "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS"


def test_all_lines_are_accounted_for(read: Reader) -> None:
    reading = read(WITNESS, DUMP)
    assert sorted([*reading.parsed, *reading.continuation]) == list(range(1, 21))
    assert not reading.losses


def test_the_outermost_frame_is_the_kernel(read: Reader) -> None:
    """Frames before it are device functions that it called."""
    log = DUMP.replace(
        "#0\t0x7feecf7cfe70\tmojo", "#0\t0x7feecf7cfe70\tload\n[1] coredump:   #1\t0x7fee\tmojo"
    )
    (fault,) = faults(read(WITNESS, log))
    assert fault.kernel is not None
    assert fault.kernel.startswith("mojo_pkg")


def test_several_exceptions_of_a_dump_are_one_fault(read: Reader) -> None:
    """One bad launch faults on many SMs."""
    second = [line.replace("SM: 127", "SM: 5").replace("Device: 0", "Device: 1") for line in LINES[2:9]]
    (fault,) = faults(read(WITNESS, [*LINES[:9], *second, *LINES[9:]]))
    assert (fault.count, fault.device) == (2, "gpu:0")
    assert fault.label == "SM 127, warp 3; SM 5, warp 3"


def test_a_dump_without_an_exception_only_shows_the_switch(read: Reader) -> None:
    """Somebody asked for it; nothing failed."""
    (mode,) = read(WITNESS, [*LINES[:2], *LINES[9:]]).records
    assert isinstance(mode, ModeRecord)
    assert (mode.name, mode.value) == ("coredump", True)


def test_two_dumps_are_two_faults(read: Reader) -> None:
    found = faults(read(WITNESS, [*LINES, *LINES[2:], *LINES]))
    assert [fault.block_first for fault in found] == [1, 21, 39]


def test_dumps_of_two_processes_interleave(read: Reader) -> None:
    log = MemoryLog([line for line in LINES for _ in range(2)], ["a", "b"] * len(LINES))
    found = faults(WITNESS.read(log.gated(WITNESS), log))
    assert [(fault.process, fault.count) for fault in found] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_dump_cut_anywhere_is_read(read: Reader, cut: int) -> None:
    reading = read(WITNESS, LINES[:cut])
    assert len(faults(reading)) == (cut >= 3)
    assert len(reading.parsed) + len(reading.continuation) == cut
    tail = read(WITNESS, LINES[cut:])
    assert len(faults(tail)) == (cut < 3)
    assert not tail.losses


def test_the_clock_may_be_taken_off_as_an_envelope(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, [line.partition("] ")[2] for line in LINES]))
    assert fault.kernel is not None


def test_an_exception_of_tomorrow_is_a_launch_failure(read: Reader) -> None:
    """A device exception without a closer kind."""
    (fault,) = faults(read(WITNESS, DUMP.replace("WARP_ILLEGAL_ADDRESS", "WARP_NEW")))
    assert (fault.kind, fault.name) == ("launch_failure", "CUDBG_EXCEPTION_WARP_NEW")


def test_an_unknown_message_is_a_counted_loss(read: Reader) -> None:
    reading = read(WITNESS, [f"[{n}] coredump: Something else" for n in range(3)])
    (loss,) = reading.losses
    assert (loss.line, loss.count) == (1, 3)


@pytest.mark.parametrize(
    "text",
    [
        "systemd-coredump: Process 12 dumped core",
        "Opening GPU coredump: /var/crash/core_2185.nvcudmp",
        "[  503.025] coredump: 1234(python3): over core_pipe_limit, skipping core dump",
    ],
)
def test_other_coredumps_are_none_of_ours(read: Reader, text: str) -> None:
    """Understood as somebody else's, so no loss."""
    reading = read(WITNESS, text)
    assert (reading.records, reading.parsed, reading.losses) == ([], [], [])
    assert reading.not_mine == [1]
