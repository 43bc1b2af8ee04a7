"""Op replay on a GPU: a program is recorded while it fails, then the ops of its log are executed alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from analyzer.pipeline import Options, open_analysis
from analyzer.replay.op_replay import replay_ops
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.plan import Plan, write_plan
from analyzer.replay.planning import build_plan
from analyzer.replay.report import ReplayReport
from analyzer.replay_result import Fidelity
from analyzer.schema import Result
from tests.gpu.cases import PROGRAMS, TORCH, Case, Ran

_ROOT = Path(__file__).parents[2]


class OpCase(Case):
    """A case of an op replay.

    ``level``: of the recording; only ``sync`` saves index values of the device. Null = the program writes its
    log by itself, and the files with its types into the folder that ``MODULAR_DEBUG`` names.
    """

    level: Literal["ops", "sync"] | None = "sync"
    extensions: tuple[str, ...] = ()
    fidelity: Fidelity = "recorded"
    repro: bool = True
    ladder: bool = True


OP_CASES = (
    OpCase(
        name="ops of embedding",
        command=(TORCH, "embedding"),
        verdict="confirmed",
        op="aten::embedding",
    ),
    OpCase(
        name="ops of embedding, types only",
        command=(TORCH, "embedding"),
        verdict="not_reproduced",
        level="ops",
        fidelity="made",
        repro=False,
    ),
    OpCase(
        name="ops of max paged_lookup",
        command=(str(PROGRAMS / "max_paged.py"), "9", "12"),
        verdict="not_reproduced",
        level=None,
        fidelity="made",
        repro=False,
        needs=("max",),
        ladder=False,  # each attempt compiles: all of them are ten minutes
        deadline_s=400.0,
        switches=(
            ("MODULAR_DEBUG", "op-log-level=TRACE,source-tracebacks,ir-output-dir={folder}/ir"),
            ("XDG_CACHE_HOME", "{folder}/cache"),  # a graph that is found in the cache writes no types
        ),
        extensions=(str(PROGRAMS / "kernels"),),
    ),
)


def run_op_case(case: OpCase, folder: Path) -> Ran:
    """Record the failing program, plan, replay its ops, compare."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    record = ["record", "--for", "torch", "--level", str(case.level), "-o", str(log), "--quiet", "--"]
    switches = {name: value.format(folder=folder) for name, value in case.switches}
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, *case.command]
    command = [sys.executable, "-m", "analyzer", *record, *program] if case.level else program
    types = folder / "ir"
    types.mkdir(exist_ok=True)
    with (folder / "record.txt" if case.level else log).open("wb") as out:
        subprocess.run(
            command,
            stdout=out, stderr=out, check=False, timeout=case.deadline_s,
            env={**os.environ, **switches, "PYTHONPATH": path},
        )  # fmt: skip
    given = tuple(sorted(types.rglob("*.mojo")))
    with open_analysis([str(log)], Options(ir=given)) as analysis:
        result, plan = analysis.result, build_plan(analysis, given)
    write_plan(plan, folder / "plan.json")
    report = _replay(result, plan, case, folder)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return Ran(
        case=case,
        report=report,
        result=result,
        duration_s=time.monotonic() - began,
        wrong=tuple(_differences(case, report, plan)),
    )


def _replay(result: Result, plan: Plan, case: OpCase, folder: Path) -> ReplayReport:
    repro = folder / "repro.py" if case.repro else None
    options = OpReplayOptions(
        folder=folder / "replay",
        deadline_s=case.deadline_s,
        repro=repro,
        ladder=case.ladder,
        custom_extensions=tuple(Path(one) for one in case.extensions),
    )
    return replay_ops(result, plan, options)


def _differences(case: OpCase, report: ReplayReport, plan: Plan) -> Iterator[str]:
    """Facts of a case that a report does not bear out."""
    op = report.op.name if report.op else None
    found = {"verdict": report.verdict, "op": op, "fidelity": report.fidelity}
    for fact, value in found.items():
        if value != getattr(case, fact):
            yield f"{fact}: expected {getattr(case, fact)}, got {value}"
    sound = [one for one in report.ops if one.outcome == "sound"]
    left = [op for op in plan.ops if op.why_not is not None]
    if not case.level and left:
        yield f"{len(left)} of {len(plan.ops)} ops of MAX have no plan: {left[0].name}: {left[0].why_not}"
    if not any(one.used_device for one in report.attempts):
        yield "no attempt used the device"
    if case.verdict == "not_reproduced" and not sound:
        yield "no op was executed"
    if (
        case.level
        and case.verdict == "not_reproduced"
        and not any(one.on_device and one.device_ns for one in sound)
    ):
        yield "no op was timed by events of the device"
    if case.repro and not report.repro_verified:
        yield "the written program does not fail alike"
    if case.verdict == "confirmed" and "valid indices, passed" not in (report.control or ""):
        yield f"control: expected the op with valid indices, got {report.control}"
