"""cuda-gdb at a GPU exception (observed.md 24, formats.md 3.19)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.schema import SourceFrame
from analyzer.witnesses.cuda_gdb import FETCHED_FAULTS, WITNESS
from tests.witnesses.conftest import Reader

KERNEL = "add_position_embeddings_kernel"
FOCUS = "block (3,0,0), thread (0,0,0), device 0, sm 127, warp 3, lane 0]"
PAGED = f"""\
Opening GPU coredump: /var/crash/core_2185.nvcudmp
[Current focus set to CUDA kernel 0, grid 180, {FOCUS}

CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7feecf7cfe40  mojo_pkg_5af0abf52ac370383650e9b_a9897f481f490ea6
#0  0x00007feecf7cfe70 in mojo_pkg_5af0abf52ac370383650e9b_a9897f481f490ea6<<<(32,1,1),(256,1,1)>>> ()
  Kernel Parent Dev Grid Status          SMs Mask  GridDim  BlockDim Invocation
*      0      -   0  180 Active 0x008000000000 (32,1,1) (256,1,1) mojo_pkg_5af0abf52ac370383650e9b() """
TRITON = f"""\
[Current focus set to CUDA kernel 0, grid 100, {FOCUS}

CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7f8eaf7d5080  {KERNEL}  (torch_cases.py:36)
#0  0x00007f8eaf7d50c0 in {KERNEL}<<<(128,1,1),(128,1,1)>>> () at /srv/app/torch_cases.py:37
37\t        tl.store(out_ptr + o, x + p, mask=m)"""
LIVE = """\
CUDA Exception: Warp Misaligned Address
The exception was triggered at PC 0x155537467cd0

Thread 1 "apgluxe" received signal CUDA_EXCEPTION_6, Warp Misaligned Address.
[Switching focus to CUDA kernel 0, grid 5, block (131507,0,0), thread (32,0,0), device 2, sm 0, warp 1]
0x0000155537462e30 in exhaust(unsigned int*, uint4*)<<<(250000,1,1),(128,1,1)>>> ()"""


def the_fault(read: Reader, text: str | list[str]) -> FaultRecord:
    reading = read(WITNESS, text)
    (record,) = reading.records
    assert isinstance(record, FaultRecord)
    assert not reading.losses
    return record


def test_kernel_grid_and_block_of_a_dump(read: Reader) -> None:
    """``grid`` is the number of the launch in its context."""
    fault = the_fault(read, PAGED)
    assert (fault.line, fault.block_first, fault.last_line) == (4, 1, 8)
    assert (fault.kind, fault.site, fault.device) == ("illegal_address", "device", "gpu:0")
    state = fault.state
    assert state is not None
    assert state.kernel == fault.kernel == "mojo_pkg_5af0abf52ac370383650e9b_a9897f481f490ea6"
    assert (state.grid_id, state.grid, state.block) == (180, (32, 1, 1), (256, 1, 1))
    assert (state.pc, state.exception) == ("0x7feecf7cfe40", "Warp Illegal Address")
    assert state.frame is None


def test_source_line_is_where_the_exception_was_triggered(read: Reader) -> None:
    """The warp stops later; the path comes from the frame, the line from the trigger."""
    fault = the_fault(read, TRITON)
    assert fault.location == SourceFrame(
        file="/srv/app/torch_cases.py", line=36, function="add_position_embeddings_kernel"
    )


def test_without_a_trigger_the_frame_tells_the_line_and_its_text(read: Reader) -> None:
    lines = [line for line in TRITON.split("\n") if "triggered" not in line]
    location = the_fault(read, lines).location
    assert location is not None
    assert (location.line, location.text) == (37, "tl.store(out_ptr + o, x + p, mask=m)")


def test_a_live_session_prints_the_focus_afterwards(read: Reader) -> None:
    fault = the_fault(read, LIVE)
    assert fault.kind == "misaligned_address"
    assert fault.state is not None
    assert fault.state.kernel == "exhaust(unsigned int*, uint4*)"
    assert (fault.state.grid_id, fault.device) == (5, "gpu:2")
    assert fault.state.grid == (250000, 1, 1)


def test_the_kernel_table_stands_in_for_a_missing_frame(read: Reader) -> None:
    lines = [line for line in PAGED.split("\n") if not line.startswith(("#0", "[Current"))]
    state = the_fault(read, lines).state
    assert state is not None
    assert (state.grid_id, state.grid, state.block) == (180, (32, 1, 1), (256, 1, 1))


def test_all_lines_but_blank_ones_are_used(read: Reader) -> None:
    reading = read(WITNESS, PAGED)
    assert reading.parsed == [4]
    assert reading.continuation == [1, 2, 5, 6, 7, 8]


def test_two_dumps_are_kept_apart(read: Reader) -> None:
    first, second = read(WITNESS, f"{PAGED}\n{TRITON}").records
    assert isinstance(first, FaultRecord)
    assert isinstance(second, FaultRecord)
    assert [first.last_line, second.block_first] == [8, 9]
    assert second.kernel == "add_position_embeddings_kernel"


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_session_cut_anywhere_is_read(read: Reader, cut: int) -> None:
    """From the exception on there is a fault, with what is known so far."""
    assert len(read(WITNESS, PAGED.split("\n")[:cut]).records) == (cut >= 4)


@pytest.mark.parametrize("after", range(3, 8))
def test_foreign_lines_in_between_are_skipped(read: Reader, after: int) -> None:
    lines = PAGED.split("\n")
    plain, mixed = (
        the_fault(read, lines),
        the_fault(read, [*lines[:after], "INFO server: step", *lines[after:]]),
    )
    assert mixed.state is not None
    assert mixed.kernel == plain.kernel


def test_repeats_are_folded(read: Reader) -> None:
    records = read(WITNESS, f"{TRITON}\n" * (FETCHED_FAULTS + 20)).records
    assert len(records) == FETCHED_FAULTS
    assert isinstance(records[-1], FaultRecord)
    assert records[-1].count == 21


def test_an_empty_exception_is_a_loss(read: Reader) -> None:
    reading = read(WITNESS, "CUDA Exception: ")
    assert [loss.line for loss in reading.losses] == [1]
