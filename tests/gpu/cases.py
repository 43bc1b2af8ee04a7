"""What each GPU program must come to, and how one is run: the log first, then its replay."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from analyzer.pipeline import analyze
from analyzer.replay.attempts import Attempts, ReplayOptions
from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport, VerdictName
from analyzer.schema import Result, Value

PROGRAMS = Path(__file__).parent / "programs"
TORCH = str(PROGRAMS / "torch_faults.py")
BOUND_S = 20.0  # an endless kernel is ended after this
_LOG_LIMIT_S = 25.0  # the first run of the endless kernel is ended by us


class Case(Value):
    """A program with what is true of it. ``line``: text of the user's line that must be named."""

    name: str
    command: tuple[str, ...]
    verdict: VerdictName
    op: str | None = None
    step: int | None = None
    line: str | None = None
    producer: str | None = None
    located_step: int | None = None
    needs: tuple[str, ...] = ("torch", "triton")
    deadline_s: float = 120.0
    switches: tuple[tuple[str, str], ...] = ()


def _torch(name: str, verdict: VerdictName, op: str | None, line: str | None, **facts: object) -> Case:
    values = {"name": name, "command": (TORCH, name), "verdict": verdict, "op": op, "line": line, "step": 4}
    return msgspec.convert({**values, **facts}, Case)


CASES = (
    _torch("embedding", "confirmed", "aten::embedding", "self.layers(self.embedding(ids))"),
    _torch("wild_pointer", "confirmed", "add_position_kernel", "add_position_kernel[(1,)]("),
    _torch("misaligned", "confirmed", "rope_cache_kernel", 'self.compiled(MISALIGNED, "rope_cache_kernel")('),
    _torch("trap", "confirmed", "moe_align_kernel", 'self.compiled(TRAP, "moe_align_kernel")('),
    _torch("endless", "hang", "wait_for_flag_kernel", "wait_for_flag_kernel[(1,)](", deadline_s=BOUND_S),
    _torch("out_of_memory", "out_of_memory", "aten::empty", "self.bytes = torch.empty("),
    _torch(
        "messenger", "confirmed", "moe_align_block_kernel", "moe_align_block_kernel[(1,)](",
        producer="topk_gate_kernel",
    ),
    _torch("sound", "not_reproduced", None, None, step=None),
    Case(
        name="max paged_lookup",
        command=(str(PROGRAMS / "max_paged.py"), "9", "12"),
        verdict="confirmed",
        op="custom__paged_lookup",
        step=9,
        line="found = ops.custom(",
        located_step=9,
        needs=("max",),
        deadline_s=300.0,
        switches=(("MODULAR_DEBUG", "op-log-level=TRACE,source-tracebacks"),),
    ),
)  # fmt: skip


class Ran(Value):
    """A case that was run. ``wrong``: each fact that did not come out; empty = all did."""

    case: Case
    report: ReplayReport
    result: Result
    duration_s: float
    wrong: tuple[str, ...]


def missing(case: Case) -> str | None:
    """Why a case cannot run here; null = it can. No device is initialised in this process."""
    listing = ["nvidia-smi", "-L"]
    if (
        shutil.which("nvidia-smi") is None
        or subprocess.run(listing, capture_output=True, check=False).returncode
    ):
        return "no NVIDIA device"
    absent = [name for name in case.needs if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def run_case(case: Case, folder: Path) -> Ran:
    """Let the program fail, analyse its log, replay it, and compare."""
    began = time.monotonic()
    command = [sys.executable, *case.command]
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    with log.open("wb") as out:
        limit = _LOG_LIMIT_S if case.verdict == "hang" else case.deadline_s
        try:
            env = {**os.environ, **dict(case.switches)}
            subprocess.run(command, stdout=out, stderr=out, check=False, timeout=limit, env=env)
        except subprocess.TimeoutExpired:
            out.write(b"(ended after its time)\n")
    result = analyze([str(log)])
    options = ReplayOptions(folder=folder / "replay", deadline_s=case.deadline_s)
    report = replay_program(result, command, options)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return Ran(
        case=case,
        report=report,
        result=result,
        duration_s=time.monotonic() - began,
        wrong=tuple(differences(case, report)),
    )


def differences(case: Case, report: ReplayReport) -> list[str]:
    """Facts of a case that a report does not bear out."""
    op, wrong = report.op, []
    found = {"verdict": report.verdict, "op": op.name if op else None, "step": op.step if op else None}
    for fact, value in found.items():
        if value != getattr(case, fact):
            wrong.append(f"{fact}: expected {getattr(case, fact)}, got {value}")
    if case.line is not None:
        line = op.source.text if op and op.source else None
        if case.line not in (line or ""):
            wrong.append(f"line: expected {case.line}, got {line}")
    producer = report.producer.name if report.producer else None
    if case.producer is not None and producer != case.producer:
        wrong.append(f"producer: expected {case.producer}, got {producer}")
    first = report.attempts[0].op if report.attempts else None
    if case.located_step is not None and (first is None or first.step != case.located_step):
        wrong.append(f"locate: expected step {case.located_step}, got {first.step if first else None}")
    return wrong


def run_coredump(command: Sequence[str], folder: Path) -> str | None:
    """The core-dump rung alone, asynchronous; gives the kernel that it names."""
    options = ReplayOptions(folder=folder, deadline_s=120.0)
    finding = Attempts([sys.executable, *command], options).run("coredump")
    return finding.op.name if finding.op is not None and finding.op.exact else None


def run_recorded(program: Sequence[str], folder: Path) -> Result:
    """Record a program with the op log of PyTorch, and analyse what was recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    record = ["-m", "analyzer", "record", "-o", str(log), "--for", "torch", "--quiet", "--"]
    command = [sys.executable, *record, sys.executable, *program]
    root = str(PROGRAMS.parents[2])
    with (folder / "console.txt").open("wb") as out:
        subprocess.run(command, stdout=out, stderr=out, check=False, timeout=180.0, cwd=root)
    return analyze([str(log)])


def first_suspect(result: Result) -> str | None:
    """Name of the op that an analysis suspects most; null = it accuses nobody."""
    return result.suspects[0].op.name if result.suspects else None
