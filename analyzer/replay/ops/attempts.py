"""Runs the attempts of one op replay, each in a fresh child, and keeps the record of each."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

import analyzer
from analyzer.replay.attempts import analyze_output
from analyzer.replay.memory import memory_limit
from analyzer.replay.ops.observe import FAILING, OpFinding, observe_ops
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.ops.words import least_true
from analyzer.replay.plan import Plan, PlanOp, write_plan
from analyzer.replay.report import BlamedOp, ReplayAttempt, Rung
from analyzer.replay.supervisor import ChildOutcome, run_child
from analyzer.replay.switches import switches, worker_environment
from analyzer.replay.worker.job import Job, dump_job

TIMING_RUNS = 5  # of an op that ran through once: enough for a median, short beside the start of a child


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt executes. ``valid``: ops whose inputs are made valid. ``seed``: of made values."""

    rung: Rung
    ops: tuple[int, ...]
    valid: tuple[int, ...] = ()
    seed: int = 0
    prefix: tuple[str, ...] = ()


class OpAttempts:
    """The attempts so far. ``trials`` and ``findings`` run along with ``records``."""

    def __init__(self, plan: Plan, options: OpReplayOptions) -> None:
        self.plan = plan
        self.options = options
        self.records: list[ReplayAttempt] = []
        self.limits_told: dict[str, None] = {}  # each once, in order
        self.trials: list[Trial] = []
        self.findings: list[OpFinding] = []
        self.folder = options.folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plan_path = self.folder / "plan.json"
        write_plan(plan, self.plan_path)
        self.imports = _import_folder(self.folder)

    @property
    def interrupted(self) -> bool:
        """Whether the last attempt was ended by Ctrl-C."""
        return bool(self.records) and self.records[-1].outcome == "interrupted"

    @property
    def left(self) -> int:
        """How many attempts may still be made."""
        return self.options.attempts_limit - len(self.records)

    def replace_plan(self, plan: Plan) -> None:
        """Go on with another plan of the same ops."""
        self.plan = plan
        write_plan(plan, self.plan_path)

    def run(self, trial: Trial) -> OpFinding:
        """Run one attempt."""
        number = len(self.records) + 1
        if self.options.progress is not None:
            self.options.progress(f"attempt {number}: {trial.rung}, {len(trial.ops)} ops")
        base = self.folder / f"{number}-{trial.rung}"
        journal = base.with_suffix(".journal")
        set_here = switches(trial.rung, os.environ, self.folder)
        child = run_child(
            [*trial.prefix, self.options.python, *self.options.worker, str(self.write_job(base, trial))],
            env=worker_environment(os.environ, set_here, self.imports),
            deadline_s=self.options.deadline_s,
            journal=journal,
            output=base.with_suffix(".log"),
            grace_s=self.options.grace_s,
            memory_limit_bytes=memory_limit(self.options.memory_limit_bytes),
            cwd=self.folder,
        )
        analysis = None if child.exit_code == 0 else analyze_output(child.output)
        self.limits_told.update(dict.fromkeys(child.limits_told))
        finding = observe_ops(child, analysis)
        self.trials.append(trial)
        self.findings.append(finding)
        self.records.append(self._record(number, trial, child, finding, set_here))
        return finding

    def blamed(self, finding: OpFinding) -> BlamedOp | None:
        """The op that an attempt ended in, under its name in the log; null = in none that can be told."""
        if finding.number is None:
            return None
        op = self.plan.ops[finding.number]
        return BlamedOp(
            name=op.name,
            kind="op",
            exact=True,
            number=op.number,
            step=op.step,
            source=op.source,
            tensors=tuple(one.info() for one in finding.inputs),
            notes=tuple(_notes(op, finding)),
        )

    def write_job(self, base: Path, trial: Trial) -> Path:
        """What the child of an attempt is to execute; gives the file."""
        options = self.options
        job = Job(
            plan=str(self.plan_path),
            journal=str(base.with_suffix(".journal")),
            ops=trial.ops,
            valid=trial.valid,
            device=options.device,
            custom_extensions=tuple(str(path.absolute()) for path in options.custom_extensions),
            user_ops=str(options.user_ops.absolute()) if options.user_ops else None,
            timing_runs=TIMING_RUNS if trial.rung == "blocking" else 1,
            seed=trial.seed,
        )
        path = base.with_suffix(".job.json")
        dump_job(job, path)
        return path

    def _record(
        self, number: int, trial: Trial, child: ChildOutcome, finding: OpFinding, set_here: dict[str, str]
    ) -> ReplayAttempt:
        op = self.blamed(finding) if finding.own is None and finding.outcome in FAILING else None
        plan = self.plan
        executed = [plan.ops[one] for one in trial.ops]
        fidelity = least_true(one.fidelity() for one in executed)
        return ReplayAttempt(
            number=number,
            rung=trial.rung,
            outcome=finding.outcome,
            command=child.command,
            switches=set_here,
            duration_s=round(child.duration_s, 3),
            output=str(child.output),
            exit_code=child.exit_code,
            signal=child.signal,
            timed_out=child.timed_out,
            kind=finding.kind,
            error=finding.error,
            op=op,
            sound_before=_sound_before(plan, finding),
            used_device=finding.used_device,
            ops=child.journal.total,
            fidelity=fidelity,
            notes=(*child.limits_told, *finding.notes),
        )


def _notes(op: PlanOp, finding: OpFinding) -> list[str]:
    ranges = [
        f"input {place}: values from {one.low} to {one.high}"
        for place, one in enumerate(finding.inputs)
        if one.low is not None
    ]
    called = [f"executed as {op.call}"] if op.call != op.name else []
    kernel = [f"the device names the kernel {finding.kernel}"] if finding.kernel else []
    return [*ranges, *called, *([op.stand_in] if op.stand_in else []), *kernel]


def _sound_before(plan: Plan, finding: OpFinding) -> bool | None:
    """Whether the same op, from the same line, ran through earlier in the same attempt (an earlier step)."""
    if finding.number is None or finding.outcome not in FAILING:
        return None
    failing = plan.ops[finding.number]
    sound = [plan.ops[number] for number, _, _ in finding.sound if number != failing.number]
    return any(
        (one.name, one.call, one.source) == (failing.name, failing.call, failing.source) for one in sound
    )


def _import_folder(folder: Path) -> Path:
    """A folder that holds this package and nothing else, for the ``PYTHONPATH`` of another interpreter.

    The folder that this package is installed in would bring the other packages of our own environment.
    """
    package = Path(analyzer.__file__).resolve().parent
    link = folder / "import" / package.name
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink() or link.resolve() != package:
        link.unlink(missing_ok=True)
        link.symlink_to(package, target_is_directory=True)
    return link.parent
