"""What a replay found: verdict, attempts, ops, what it rules out, and how far its inputs can be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from analyzer.replay_result import BlamedOp, Comparison, ReplayAttempt, ReplayedOp
from analyzer.report.story.telling import Scene, code, counted, gap, mixed, omitted, replayed, strong, words
from analyzer.report.story.values import Block, Cite, Items, Paragraph, Part, Row, Section, Sentence, Table
from analyzer.schema import Replay

RUNG_WORDS = {
    "locate": "the device synchronised after each call, to find the failing one",
    "blocking": "blocking launches",
    "control": "control",
    "uncached": "without the caching allocator",
    "coredump": "with a GPU core dump",
    "sanitizer": "under compute-sanitizer",
    "shrink": "a shorter list of ops",
}
FIDELITY_WORDS = {
    "recorded": "recorded values",
    "statistics": "values made after recorded statistics",
    "made": "made values, valid by construction",
}
OUTCOME_WORDS = {
    "out_of_memory": "out of memory",
    "setup_failed": "could not be set up",
    "not_run": "not run",
}
VERDICT_WORDS = {
    "confirmed": "confirmed",
    "confirmed_other_op": "confirmed, but another op",
    "not_reproduced": "not reproduced (that is no proof of innocence: blocking hides races)",
    "hang": "it hangs",
    "out_of_memory": "out of memory",
    "not_replayable": "not replayable",
    "setup_failed": "could not be set up",
    None: "interrupted before anything could be said",
}
QUIET_SWITCHES = frozenset(
    {"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"}
)  # change what is printed, not what runs
ATTEMPTS_SHOWN = 20
COMMAND_CHARS = 300
NS_PER_US = 1_000
Pieces = Iterator[str | Part]


def replay(scene: Scene) -> Section:
    """What executing the window again found. Rests on the outputs of the attempts, which are named."""
    done = scene.result.replay
    if done is None:
        tail = " runs the program again with blocking launches and says what that confirms."
        none = gap("No replay was made: ", code("--replay -- <your command>"), tail)
        return Section(id="replay", title="Replay", blocks=(Paragraph(sentences=(none,)),))
    blocks: list[Block] = [Paragraph(sentences=(verdict_told(scene, done),))]
    facts = (*_ran(done), *_found(scene, done))
    blocks += [Items(sentences=facts)] if facts else []
    attempts = tuple(attempt_told(scene, done, one) for one in done.attempts[:ATTEMPTS_SHOWN])
    rest = len(done.attempts) - len(attempts)
    blocks += [Items(sentences=attempts)] if attempts else []
    blocks += omitted(rest, "more attempt")
    blocks += _ops(scene, done)
    meaning = (*_meaning(scene, done), *_limits(scene, done))
    blocks += [Items(sentences=meaning)] if meaning else []
    return Section(id="replay", title="Replay", blocks=tuple(blocks))


def verdict_told(scene: Scene, done: Replay) -> Sentence:
    """The verdict, and how it came about."""
    word = VERDICT_WORDS[done.verdict].capitalize()
    if not done.statement:
        return replayed(strong(word), ".")
    return replayed(strong(word), ": ", *mixed(scene, done.statement), ".")


def _ran(done: Replay) -> Iterator[Sentence]:
    commands = {tuple(one.command) for one in done.attempts if one.rung == "blocking"}
    for command in sorted(commands)[:1]:
        yield replayed(strong("What ran: "), code(shlex.join(command), COMMAND_CHARS), ".")
    if done.kind == "ops":
        told = f": the ops of the window by themselves, {counted(len(done.ops), 'op')}."
        yield replayed(strong("What ran"), told)
    if done.fidelity is not None:
        yield replayed(strong("Inputs: "), f"{FIDELITY_WORDS[done.fidelity]}.")


def _found(scene: Scene, done: Replay) -> Iterator[Sentence]:
    if done.op is not None:
        sure = "" if done.op.exact else " (met there: the attempt did not serialise its launches)"
        notes = f"; {'; '.join(done.op.notes)}" if done.op.notes else ""
        yield replayed(strong("Failed at: "), *blamed(scene, done.op), sure, *mixed(scene, notes), ".")
    if done.producer is not None:
        yield replayed(strong("Index written by: "), *blamed(scene, done.producer), ".")


def replay_told(scene: Scene, done: Replay) -> tuple[Sentence, ...]:
    """All about a replay but its verdict and its attempts."""
    return (*_ran(done), *_found(scene, done), *_meaning(scene, done), *_limits(scene, done))


def blamed(scene: Scene, op: BlamedOp) -> Pieces:
    """Name, step and source line of the place where an attempt failed."""
    yield code(op.name, scene.detail.name_chars)
    if op.step is not None:
        yield f" in step {op.step}"
    if op.source is not None:
        yield ", made at "
        yield code(f"{op.source.file}:{op.source.line} in {op.source.function}")
        if op.source.text:
            yield ": "
            yield code(op.source.text.strip())


def attempt_told(scene: Scene, done: Replay, one: ReplayAttempt) -> Sentence:
    """What ran, how long, how it ended, where, and which file has the output."""
    outcome = OUTCOME_WORDS.get(one.outcome, one.outcome)
    head = strong(f"Attempt {one.number}, {RUNG_WORDS[one.rung]}: {outcome}")
    return replayed(head, *_attempt(scene, done, one))


def _attempt(scene: Scene, done: Replay, one: ReplayAttempt) -> Pieces:
    yield f" after {one.duration_s:.1f} s"
    yield f", {counted(one.ops, 'op event')} in its journal" if one.ops else ""
    yield f", {_end(one)}" if _end(one) else ""
    if one.op is not None and (done.op is None or not one.op.is_same(done.op)):
        yield ", at "
        yield code(one.op.text(), scene.detail.name_chars)
    if one.error:
        yield ": "
        yield code(one.error, scene.detail.name_chars)
    yield "."
    if one.fidelity is not None:
        yield f" Inputs: {FIDELITY_WORDS[one.fidelity]}."
    if one.sound_before is not None:
        yield f" The same op was {'' if one.sound_before else 'not '}seen sound earlier in it."
    yield from _switches(done, one)
    for note in one.notes:
        yield " "
        yield from mixed(scene, note)
        yield "."
    if one.output:
        yield " Output: "
        yield code(one.output)
        yield "."


def _switches(done: Replay, one: ReplayAttempt) -> Pieces:
    """What was set for it; said once where an attempt is like the one before."""
    before = next((other for other in done.attempts if other.number == one.number - 1), None)
    if before is not None and before.switches == one.switches:
        yield " The same switches." if one.switches else ""
        return
    switches = [f"{name}={value}" for name, value in one.switches.items() if name not in QUIET_SWITCHES]
    if switches:
        yield " Switches: "
        yield code(" ".join(switches), COMMAND_CHARS)
        yield "."


def _end(one: ReplayAttempt) -> str:
    if one.timed_out:
        return "killed at its deadline"
    if one.signal is not None:
        return f"signal {one.signal}"
    return "" if one.exit_code in {None, 0} else f"exit code {one.exit_code}"


def _ops(scene: Scene, done: Replay) -> Iterator[Block]:
    """The ops of an op replay; the failing and the untried ones are always among those shown."""
    limit = scene.detail.rows
    kept = sorted(done.ops, key=lambda one: (one.outcome == "sound", one.number))[:limit]
    rows = tuple(_op_row(scene, one) for one in sorted(kept, key=lambda one: one.number))
    columns = ("op", "what ran", "inputs", "outcome", "time", "lines")
    if rows:
        yield Table(caption="Ops of the replay", columns=columns, rows=rows)
    yield from omitted(len(done.ops) - len(rows), "more op")


def _op_row(scene: Scene, one: ReplayedOp) -> Row:
    window = scene.result.window
    source = window.first_op.input if window is not None else 0
    clock = "device" if one.on_device else "host"
    took = "" if one.device_ns is None else f"{one.device_ns / NS_PER_US:,.1f} us ({clock})"
    outcome = OUTCOME_WORDS.get(one.outcome, one.outcome) + (f": {one.why_not}" if one.why_not else "")
    stands_in = (words(f" (stands in: {one.stand_in})"),) if one.stand_in else ()
    return Row(
        cells=(
            (code(one.name, 80),),
            (code(one.call, 80), *stands_in),
            (words(FIDELITY_WORDS[one.fidelity]),),
            (words(outcome),),
            (words(took),),
        ),
        cites=() if one.line is None else (Cite(input=source, line=one.line),),
        marked=one.outcome not in {"sound", "not_run"},
        kind="replayed",
    )


def _meaning(scene: Scene, done: Replay) -> Iterator[Sentence]:
    for text in done.rules_out:
        yield replayed(strong("Rules out "), *mixed(scene, text), ".")
    if done.control and not any(done.control in text for text in (done.statement, *done.rules_out)):
        yield replayed(strong("Control: "), *mixed(scene, done.control), ".")
    if done.comparison is not None:
        yield from _compared(done.comparison)


def _compared(beside: Comparison) -> Iterator[Sentence]:
    if beside.same_kind is not None and beside.replay_kind != "unknown":
        told = "the same kind of failure" if beside.same_kind else "another kind of failure"
        yield replayed(strong("Beside the log: "), f"{told} ({beside.replay_kind}).")
    if beside.same_op is not None and beside.replay_op is not None:
        told = "the op that the log leads to, " if beside.same_op else "another op than the log leads to: "
        yield replayed(strong("Beside the log: "), told, code(beside.replay_op, 120), ".")


def _limits(scene: Scene, done: Replay) -> Iterator[Sentence]:
    for text in done.skipped:
        yield replayed(strong("Not tried: "), *mixed(scene, text), ".")
    if done.shrunk_to is not None:
        yield replayed(strong("Smallest failing list: "), f"{counted(len(done.shrunk_to), 'op')}.")
    if done.repro is not None:
        alike = "Program that fails by itself: " if done.repro_verified is not False else "Program: "
        yield replayed(strong(alike), code(done.repro), ".")
    if done.interrupted:
        yield gap("The replay was interrupted: later attempts are missing.")
