"""Failed allocations and their numbers (formats.md 3.4)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from analyzer.model import FaultRecord
from analyzer.parse.oom_text import read_oom
from analyzer.witnesses.oom import WITNESS

Read = Any
GIB = 1 << 30
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of "
    "80.00 GiB of which {free} GiB is free. {others}Including non-PyTorch memory, this process has 50.00 GiB "
    "memory in use. {limit}Of the allocated memory 40.00 GiB is allocated by PyTorch, {pools}and {unused} "
    "GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try X=y"
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.90 GiB total capacity; "
    "11.00 GiB already allocated; 800.00 MiB free; 14.20 GiB reserved in total by PyTorch)"
)


def text(free: str = "1.00", others: str = "", limit: str = "", pools: str = "", unused: str = "0.50") -> str:
    return NEW.format(free=free, others=others, limit=limit, pools=pools, unused=unused)


def test_numbers_are_read() -> None:
    found = read_oom(
        text(others="Process 7 has 20.00 GiB memory in use. Process 8 has 9.00 GiB memory in use. ")
    )
    assert found is not None
    assert (found.requested, found.total, found.free) == (2 * GIB, 80 * GIB, GIB)
    assert (found.others, found.own, found.allocated) == (29 * GIB, 50 * GIB, 40 * GIB)
    assert (found.device, found.vendor) == ("gpu:3", "nvidia")
    assert "If reserved" not in found.text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (text(), "exhausted"),
        (text(unused="9.00"), "fragmentation"),
        (text(free="5.00"), "the driver refused"),
        (text(limit="41.00 GiB allowed; "), "limit of the process, 41.00 GiB"),
        (text(others="Process 7 has 40.00 GiB memory in use. "), "other processes hold 40.00 GiB"),
        (
            text(pools="with 30.00 GiB allocated in private pools (e.g., CUDA Graphs), "),
            "pools of captured graphs",
        ),
        (OLD.replace("2.00 GiB", "1.00 GiB"), "fragmentation, 3.20 GiB"),
        (OLD, "exhausted"),
    ],
)
def test_fragmentation_is_told_from_exhaustion(line: str, says: str) -> None:
    found = read_oom(line)
    assert found is not None
    assert says in found.reading


@pytest.mark.parametrize(
    ("line", "requested"),
    [
        (
            "HIP out of memory. Tried to allocate 96.00 GiB. GPU 0 has a total capacity of 191.98 GiB of",
            96 * GIB,
        ),
        ("CUDA out of memory. Tried to allocate more than 1EB memory.", None),
        (
            "x.OutOfMemoryError: Out of memory allocating 1,024 bytes (allocated so far: 512 bytes).",
            1024,
        ),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", 8 * GIB),
        ("x: allocating 1024.00 MiB on device 0: cudaMalloc failed: out of memory", GIB),
        ("cudaMalloc failed: out of memory", None),
        ("h:1:2 [0] alloc.h:2 NCCL WARN Failed to CUDA host alloc 4096 bytes", 4096),
        ("ValueError: No available memory for the cache blocks. Try", None),
        ("[1.5] Memory cgroup out of memory; Out of memory: Killed process 42 (python3) total-vm:1kB", None),
    ],
)
def test_printers(read: Read, line: str, requested: int | None) -> None:
    reading = read(WITNESS, [line])
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.site) == ("out_of_memory", "host")
    found = read_oom(line)
    assert found is not None
    assert found.requested == requested


def test_glued_to_a_progress_bar(read: Read) -> None:
    (fault,) = read(WITNESS, ["Loading: 33%|### | 1/3 [00:01<00:02]" + text()]).records
    assert isinstance(fault, FaultRecord)
    assert fault.text.startswith("CUDA out of memory.")


def test_cut_before_the_size_is_a_loss(read: Read) -> None:
    reading = read(WITNESS, ["RuntimeError: CUDA out of memory. Tried to allocate 2"])
    assert not reading.records
    assert [loss.line for loss in reading.losses] == [1]


def test_cut_anywhere_behind_the_size_is_read(read: Read) -> None:
    line = text()
    first = line.index("2.00 GiB") + len("2.00 GiB")
    for end in range(first, len(line)):
        assert read(WITNESS, [line[:end]]).records, line[:end]


def test_source_line_of_a_traceback_is_no_error(read: Read) -> None:
    assert not read(WITNESS, ['    raise ValueError("No available memory for the cache blocks. "']).records


def test_a_hundred_thousand_that_differ_only_in_numbers_are_cheap(read: Read) -> None:
    lines = [text(free=f"{n % 977}.{n % 100:02d}", unused=f"{n % 1013}.50") for n in range(100_000)]
    began = time.perf_counter()
    records = read(WITNESS, lines).records
    assert sum(record.count for record in records) == 100_000
    assert len(records) < 50
    assert time.perf_counter() - began < 15


def test_a_rest_of_a_few_mib_is_no_fragmentation() -> None:
    """Every pool has one; the 20 MiB asked for twice are still nothing of 80 GiB."""
    found = read_oom(text(unused="0.02").replace("allocate 2.00 GiB", "allocate 8.00 MiB"))
    assert found is not None
    assert "fragmentation" not in found.reading


CONTAINED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.25 GiB is free. {others}Of the allocated memory {mine} GiB is allocated by "
    "PyTorch, and 20.50 MiB is reserved by PyTorch but unallocated."
)


@pytest.mark.parametrize(
    ("others", "mine", "held"),
    [
        ("Process 4021 has 77.89 GiB memory in use. ", "76.50", None),
        (
            "Process 9 has 30.00 GiB memory in use. Process 4021 has 47.89 GiB memory in use. ",
            "46.50",
            30 * GIB,
        ),
        ("Process 9 has 40.00 GiB memory in use. ", "30.00", 40 * GIB),
    ],
)
def test_the_process_itself_is_no_other_process(others: str, mine: str, held: int | None) -> None:
    """In a container its pid is another one; together they would hold more than the device has."""
    found = read_oom(CONTAINED.format(others=others, mine=mine))
    assert found is not None
    assert found.others == held


CHOSEN = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task=python3,pid=42,uid=0"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("Memory cgroup out of memory: Killed process 42 (python3) total-vm:9kB", "its container's limit"),
        ("Memory cgroup out of memory: Kill process 42 (python3) score 999 or sacrifice child", "limit"),
        (
            "Out of memory: Kill process 42 (python3) score 999 or sacrifice child",
            "not of the GPU: the whole host",
        ),
        (CHOSEN, "its container's limit"),
    ],
)
def test_the_kernel_kills_for_a_container_or_for_the_host(read: Read, line: str, says: str) -> None:
    (fault,) = read(WITNESS, [line]).records
    assert (fault.kind, fault.label) == ("out_of_memory", "process 42 of the host")
    assert says in fault.text


def test_a_kill_that_is_told_twice_is_one_fault(read: Read) -> None:
    reading = read(WITNESS, [CHOSEN, "Memory cgroup out of memory: Killed process 42 (python3) total-vm:9kB"])
    assert [record.line for record in reading.records] == [2]
    assert reading.parsed == [1, 2]
