"""What to run next: the cheapest command that adds knowledge, with the reason."""

from __future__ import annotations

from analyzer.advice import driver_steps, host_steps, max_steps, torch_steps
from analyzer.advice.commands import BLOCKING, COMMAND, KNOWN, MAX_POOL_OFF, TORCH_POOL_OFF
from analyzer.advice.dump_steps import HIDDEN, dump_step
from analyzer.advice.graph_steps import capture_steps, eager_command, is_capture
from analyzer.advice.program import Program, Surroundings, program_of
from analyzer.advice.sanitizer_steps import SANITIZER, is_of_sanitizer, sanitizer_steps
from analyzer.advice.table import bare_steps, rows_for
from analyzer.model import Advice, FaultRecord
from analyzer.schema import Confidence, Modes, NextStep
from analyzer.tables.codes import by_code
from analyzer.tables.kinds import ACCESS
from analyzer.tables.programs import program_row

_ON_DEVICE = ACCESS | {"device_assert", "library_status", "nan", "no_kernel_image"}
_NOTHING_BESIDE = Surroundings()


def next_steps(
    fault: FaultRecord | None,
    confidence: Confidence,
    modes: Modes,
    advice: list[Advice],
    *,
    has_ops: bool,
    beside: Surroundings = _NOTHING_BESIDE,
) -> list[NextStep]:
    """Commands in the order in which they should be tried.

    Args:
        fault: The root fault, null = none.
        confidence: How sure the conclusion is.
        modes: Switches that the log shows.
        advice: What the log itself advises.
        has_ops: Whether it has op records.
        beside: What stands beside the fault: from it follow framework, server and names for the commands.
    """
    if fault is None:
        return _advised(advice, _for_clean(modes))
    program = program_of(fault, beside, has_ops=has_ops)
    own = _own_steps(fault, confidence, modes, program, beside, has_ops=has_ops)
    if not own and confidence == "undecided":
        own = [_record(program, _of_code(fault))]
    if driver_steps.is_hardware(fault) or program.graph:
        return own  # what the log advises debugs software, launch by launch
    return _advised(advice, own)


def _of_code(fault: FaultRecord) -> str:
    """What the table says of the code of a fault; its steps are those for CUDA."""
    row = by_code(fault.code) if fault.code is not None and fault.vendor == "nvidia" else None
    return f"code {row.code}: {row.meaning}; first: {row.next_step}. Otherwise " if row else ""


def _record(program: Program, told: str = "") -> NextStep:
    """What is left where nothing more exact is known: a log that says more."""
    row = program.server or program_row("torch" if program.torch else "max" if program.max else None)
    chosen = f" --for {row.name}" if row and row.recorded else ""
    why = (
        f"{told}nothing here tells more: runs it with the switches that name the failing op, and stamps lines"
    )
    return NextStep(command=f"trace-analyze record{chosen} -o serve.log -- {COMMAND}", why=why)


def _advised(advice: list[Advice], own: list[NextStep]) -> list[NextStep]:
    told = {_whole(one.command): one for one in advice if one.command and not _said_better(one.command, own)}
    return [NextStep(command=text, why=f"line {one.line}: {one.text}") for text, one in told.items()] + own


def _whole(command: str) -> str:
    """The advice as a command: logs often give the settings alone."""
    settings_only = all("=" in word for word in command.split())
    return f"{command} {COMMAND}" if settings_only else command


def _said_better(command: str, steps: list[NextStep]) -> bool:
    """Whether a step of ours sets all that the log's own advice sets, and more."""
    words = command.replace("=", ",").split(",")
    return any(all(word in step.command for word in words) for step in steps)


def _own_steps(
    fault: FaultRecord,
    confidence: Confidence,
    modes: Modes,
    program: Program,
    beside: Surroundings,
    *,
    has_ops: bool,
) -> list[NextStep]:
    if fault.site == "driver_log":
        return driver_steps.kernel_log_steps(fault)
    if rows := rows_for(fault, program):
        return rows
    if program.bare:
        return _for_bare(fault, program, beside)
    if is_capture(fault):
        return capture_steps(program)
    if is_of_sanitizer(fault) and fault.site == "device":
        return sanitizer_steps(fault)
    if fault.kind in _ON_DEVICE:
        return _for_device(fault, confidence, modes, program, has_ops=has_ops)
    if fault.vendor == "amd" and fault.kind == "hang_timeout":
        return driver_steps.program_steps(fault, confidence)
    return host_steps.host_steps(fault, program, beside)


def _for_bare(fault: FaultRecord, program: Program, beside: Surroundings) -> list[NextStep]:
    """Nothing shows whose devices the program uses: what needs no vendor, and what looks at the host."""
    if own := bare_steps(fault, program):
        return own
    on_host = fault.kind not in {*_ON_DEVICE, "configuration"}
    return (host_steps.host_steps(fault, program, beside) if on_host else []) or [_record(program)]


def _for_device(
    fault: FaultRecord, confidence: Confidence, modes: Modes, program: Program, *, has_ops: bool
) -> list[NextStep]:
    """By framework; what is known of neither gets steps for both."""
    if program.torch:
        own = torch_steps.torch_steps(fault, confidence, modes, program)
    elif program.max:
        own = max_steps.max_steps(fault, confidence, modes, program, has_ops=has_ops)
    elif program.own:
        return driver_steps.program_steps(fault, confidence)
    else:
        own = _for_either(fault, confidence, modes, program)
    return own + _replay(fault, confidence, program)


def _for_either(fault: FaultRecord, confidence: Confidence, modes: Modes, program: Program) -> list[NextStep]:
    """The log does not show the framework: settings of the one mean nothing to the other."""
    if fault.kind not in {*ACCESS, "device_assert"}:
        return torch_steps.torch_steps(fault, confidence, modes, program)
    steps = []
    if confidence not in KNOWN or fault.kind == "device_assert":
        blocking = "PyTorch, or any CUDA program: the error is raised by the launch that caused it"
        steps.append(NextStep(command=f"{BLOCKING} {COMMAND}", why=blocking))
        steps.append(
            max_steps.sync_step("MAX: starts with blocking launches, so that the error names the op")
        )
    if fault.kind == "device_assert":
        return steps
    steps += dump_step(fault, modes, program, None if confidence in KNOWN else HIDDEN)
    why = "gives the exact thread, address and allocation; the memory pools are off: they hide overruns"
    sanitize = f"{TORCH_POOL_OFF} {MAX_POOL_OFF} {SANITIZER} --tool memcheck {COMMAND}"
    return [*steps, NextStep(command=sanitize, why=why)]


def _replay(fault: FaultRecord, confidence: Confidence, program: Program) -> list[NextStep]:
    """Our own replay does these runs, watched, and says whether the op is confirmed."""
    if confidence in {*KNOWN, "none"} or fault.kind not in {*ACCESS, "device_assert"}:
        return []
    why = (
        "does these runs for you in child processes, compares them with this log, and says what is confirmed"
    )
    command = eager_command(program) if program.graph else COMMAND
    return [NextStep(command=f"trace-analyze --replay -- {command}", why=why)]


def _for_clean(modes: Modes) -> list[NextStep]:
    partial = [one for one in modes.nan_check if one.checked < one.of]
    if not partial:
        return []
    why = (
        f"only {partial[0].checked} of {partial[0].of} float outputs were NaN-checked "
        f"(stride {partial[0].stride}); the stride can be set in the configuration file only"
    )
    return [NextStep(command="max-debug.nan-check-stride = 1   # in the MAX configuration file", why=why)]
