"""``--replay`` without a program: execute the ops of the window by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from analyzer.cli.replay_options import ReplayWanted
from analyzer.errors import ReplaySetupError
from analyzer.pipeline import Analysis, Options, open_analysis
from analyzer.replay.op_replay import replay_ops
from analyzer.replay.ops.files import with_absolute_files
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.ops.user_file import names_of_functions
from analyzer.replay.ops.verdict import reasons
from analyzer.replay.plan import Plan, read_plan, write_plan
from analyzer.replay.planning.build import build_plan, with_user_ops, without_user_ops
from analyzer.replay.planning.captures import folder_beside
from analyzer.replay.planning.inside import is_inside
from analyzer.replay.report import ReplayReport
from analyzer.replay.run_folder import run_folder
from analyzer.replay.state import LastAnalysis, nothing_to_replay, replay_folder
from analyzer.report.write import write_atomically
from analyzer.schema import Result
from analyzer.scratch import scratch_folder


def plan_for(analysis: Analysis, wanted: ReplayWanted) -> Plan:
    """The plan given, else one made of the log and the material beside it; written where asked for.

    Raises:
        ReplaySetupError: No op of it can be executed; or the given file is no plan.
    """
    logs = [one.path for one in analysis.result.inputs]
    plan = given_plan(wanted, logs) or build_plan(analysis, wanted.inputs)
    if wanted.user_ops is not None:
        plan = with_user_ops(plan, names_of_functions(wanted.user_ops))
    return checked(plan, wanted, [one.path for one in analysis.result.inputs])


def given_plan(wanted: ReplayWanted, logs: Sequence[str]) -> Plan | None:
    """The plan of ``--plan``; its files are beside it, or in what else was named.

    Raises:
        ReplaySetupError: It is no plan, or reads a file that nobody named.
    """
    if wanted.plan is None:
        return None
    home = wanted.plan.absolute().parent
    plan = with_absolute_files(read_plan(wanted.plan), home)
    beside = [folder_beside(Path(log)) for log in logs if log != "-"]
    named = [home, *wanted.inputs, *(folder for folder in beside if folder is not None)]
    for op in plan.ops:
        for file in (one.file for one in op.tensors() if one.file is not None):
            if not any(is_inside(folder, Path(file)) for folder in named):
                raise ReplaySetupError(
                    f"{wanted.plan}: op {op.number} reads {file!r}, which lies neither beside the plan nor "
                    "in what was given: name its folder with --replay-inputs"
                )
    return plan


def checked(plan: Plan, wanted: ReplayWanted, inputs: Sequence[str]) -> Plan:
    """Write the plan where asked for; refuse one that has nothing to execute.

    Raises:
        ReplaySetupError: With the reason of each op, and what to give.
    """
    plan = with_absolute_files(plan, Path.cwd())
    if wanted.user_ops is None:
        plan = without_user_ops(plan)
    if wanted.save_plan is not None:
        write_plan_to(plan, wanted.save_plan)
    if not plan.runnable():
        raise nothing_to_replay(inputs, [*reasons(plan), *plan.notes])
    return plan


def write_plan_to(plan: Plan, path: Path) -> None:
    """Write a plan; an older file stays if it cannot be.

    Raises:
        WriteError: It cannot be written.
    """
    with scratch_folder() as folder:
        made = folder / "plan.json"
        write_plan(plan, made)
        write_atomically(path, made.read_bytes())


def run_plan(
    result: Result, plan: Plan, wanted: ReplayWanted, tell: Callable[[str], None] | None
) -> ReplayReport:
    """Execute a plan and judge it."""
    with run_folder(replay_folder(Path.cwd())) as folder:
        options = OpReplayOptions(
            folder=folder,
            deadline_s=wanted.deadline_s,
            memory_limit_bytes=wanted.memory_limit_bytes,
            python=wanted.python,
            device=wanted.device,
            custom_extensions=wanted.custom_extensions,
            user_ops=wanted.user_ops,
            plan_path=wanted.save_plan or wanted.plan,
            repro=wanted.repro,
            progress=tell,
        )
        report = replay_ops(result, plan, options)
    if wanted.plan is None:
        return report
    told = f"{report.statement}; the plan was given: its ops and inputs are as {wanted.plan} states them"
    return msgspec.structs.replace(report, statement=told)


def reopened(last: LastAnalysis, wanted: ReplayWanted) -> tuple[Result, Plan]:
    """Analysis and plan of the last analysis made in this directory, from its inputs.

    Raises:
        ReplaySetupError: An input is gone, or nothing of it can be executed.
    """
    plan = given_plan(wanted, last.inputs)
    if plan is not None:
        return last.result, checked(plan, wanted, last.inputs)
    if "-" in last.inputs:
        raise ReplaySetupError(
            "the last analysis made here read standard input, which is gone: write it to a file, give that, "
            "as in: trace-analyze serve.log --replay"
        )
    gone = [path for path in (*last.inputs, *last.ir) if not Path(path).exists()]
    if gone:
        raise ReplaySetupError(
            f"{gone[0]}: analysed here last, and gone since: give the log where it is now, "
            "as in: trace-analyze serve.log --replay"
        )
    options = Options(ir=tuple(map(Path, last.ir)), window=last.window, process=last.process)
    with open_analysis(last.inputs, options) as analysis:
        return analysis.result, plan_for(analysis, wanted)
