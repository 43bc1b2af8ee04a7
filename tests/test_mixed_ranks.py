"""Eight ranks in one file: one root fault, the right rank, and everything else in its role (formats.md 5)."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Fault, Result

RANKS = 8
GUILTY = 5
ASSERTS = 1000
CASCADE = 500
LIMIT_S = 3.0
START_S = 10  # seconds of the clock of the log
_ASSERT = (
    "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [{block},0,0], "
    "thread: [{thread},0,0] "
    'Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.'
)
_ASYNC = (
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect."
)
_ERROR = f"""\
torch.AcceleratorError: CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/CUDART__TYPES.html for more information.
{_ASYNC}
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
""".split("\n")
_WATCHDOG = (
    "[rank{rank}]:[E728 09:24:{second}.351647859 ProcessGroupNCCL.cpp:685] [Rank {rank}] "
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=53, OpType=ALLREDUCE, NumelIn=4096, "
    "NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)


def worker(rank: int, text: str) -> str:
    """A line of vLLM's worker."""
    return f"(Worker_TP{rank} pid={1140 + rank}) ERROR 07-28 09:14:12 [multiproc_executor.py:880] {text}"


def failure(rank: int, at: int) -> Iterator[str]:
    """A traceback and its error; ``at`` = the place in the program."""
    yield worker(rank, "WorkerProc hit an exception.")
    yield worker(rank, "Traceback (most recent call last):")
    yield worker(rank, f'  File "/srv/app/model.py", line {at}, in step')
    yield worker(rank, "    sampled = sampled_token_ids.tolist()")
    yield from (worker(rank, line) for line in _ERROR)


def payloads() -> Iterator[str]:
    """The lines without what the container runtime puts before them."""
    yield "(APIServer pid=7) INFO 07-28 09:14:10 [loggers.py:116] Engine 000: Running: 8 reqs"
    yield from (_ASSERT.format(block=n // 64, thread=n % 64) for n in range(ASSERTS))
    bar = "Processed prompts:  50%|#####     | 4/8 [00:01<00:01,  2.41it/s, est. speed input: 11.2 toks/s]"
    first, *rest = failure(GUILTY, 88)
    yield bar + first
    yield from rest
    for number in range(CASCADE):
        yield from failure(GUILTY, 100 + number % 7)
    yield "(EngineCore_DP0 pid=300) ERROR 07-28 09:14:13 [core.py:720] EngineCore encountered a fatal error."
    yield "(APIServer pid=7) ERROR 07-28 09:14:13 [async_llm.py:480] AsyncLLM output_handler failed."
    for rank in range(RANKS):
        if rank != GUILTY:
            yield _WATCHDOG.format(rank=rank, second=10 + rank)
    yield "terminate called after throwing an instance of 'c10::AcceleratorError'"
    yield "  what():  CUDA error: device-side assert triggered"


def log() -> str:
    lines = (f"{clock(at)} stderr F {text}\n" for at, text in enumerate(payloads()))
    return "".join(lines)


def clock(at: int) -> str:
    return (
        f"2026-07-28T09:{14 + at // 60_000:02d}:{START_S + at // 1000 % 50:02d}.{at % 1000:03d}001002+00:00"
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path: Path = tmp_path_factory.mktemp("ranks") / "pod.log"
    path.write_text(log(), encoding="utf-8")
    analyze([str(path)])  # grammars and imports are not what is measured
    begin = time.process_time()
    found = analyze([str(path)])
    took_s = time.process_time() - begin
    sys.stdout.write(f"analysed {found.accounting.total_lines} lines in {took_s:.2f} s\n")
    assert took_s < LIMIT_S
    return found


def roles(result: Result, role: str) -> list[Fault]:
    return [fault for fault in result.faults if fault.role == role]


def test_there_is_one_root_on_the_right_rank(result: Result) -> None:
    """The device speaks first; the line of the driver has no tag, its process is the one that reports it."""
    (root,) = roles(result, "root")
    assert (root.kind, root.code, root.trust, root.line) == ("device_assert", 710, "exact", 2)
    assert (root.rank, root.count) == (GUILTY, ASSERTS)
    assert root.process == f"Worker_TP{GUILTY} pid={1140 + GUILTY}"


def test_the_poisoned_context_is_cascade(result: Result) -> None:
    reports = [fault for fault in roles(result, "cascade") if fault.witness == "c10"]
    assert {fault.rank for fault in reports} == {GUILTY}
    # Every error of the cascade, the first one, and what() of the last.
    assert sum(fault.count for fault in reports) == CASCADE + 2
    assert len(reports) < 20


def test_watchdogs_are_bystanders(result: Result) -> None:
    watchdogs = [fault for fault in result.faults if fault.witness == "process_group_nccl"]
    assert {fault.rank for fault in watchdogs} == set(range(RANKS)) - {GUILTY}
    assert {fault.role for fault in watchdogs} == {"bystander"}


def test_servers_never_win(result: Result) -> None:
    told = [fault for fault in result.faults if fault.witness == "vllm"]
    assert {fault.role for fault in told} <= {"bystander", "cascade"}
    assert Counter(fault.process for fault in told)["APIServer pid=7"] == 1


def test_nothing_is_lost(result: Result) -> None:
    assert not result.losses
    counts = result.accounting
    assert counts.parsed + counts.continuation + counts.ignored == counts.total_lines
