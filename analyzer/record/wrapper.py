"""``trace-analyze record``: run a command so that its next crash can be analysed.

Standard output and error are recorded line by line with times and passed on unchanged; signals go to the
command; its exit code is ours. ``trailer.py`` describes the lines that the recorder adds.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from analyzer.errors import InputError, UsageError
from analyzer.record.losses import Losses
from analyzer.record.ops.watch import OpsWatch
from analyzer.record.relay import GRACE_S, Relay
from analyzer.record.rotate import LogFile, check_not_recorded
from analyzer.record.stamp import Clock, stamp_lines
from analyzer.record.switches import Level, Plan, Target, plan_switches
from analyzer.record.trailer import render_line
from analyzer.record.versions import VersionsAsked
from analyzer.replay.processes import ProcessTree
from analyzer.schema import Value
from analyzer.scratch import ENDING_SIGNALS, owned

EXIT_NOT_FOUND, EXIT_NOT_EXECUTABLE, EXIT_SIGNAL = 127, 126, 128  # as a shell reports them
VERSIONS_WAIT_S = 10.0  # after a short command; a server has had its answers for long
_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
_FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})
_ENDING = frozenset({*ENDING_SIGNALS, signal.SIGQUIT})
MARKER_VARIABLE = "TRACE_ANALYZE_RECORDING"  # in the environment of every process that the command starts


class RecordOptions(Value):
    """What ``record`` was asked for.

    ``output``: null = ``trace-<time>.log`` here; ``.zst`` at its end compresses. ``max_bytes``: size of a
    file on disk before the next one begins; null = one file. ``keep``: older files that stay.
    """

    output: Path | None = None
    target: Target = "any"
    level: Level = "ops"
    max_bytes: int | None = None
    keep: int = 5
    quiet: bool = False


def record(command: Sequence[str], options: RecordOptions) -> int:
    """Run ``command`` and record it.

    Args:
        command: Program and arguments; no shell is involved.
        options: Where to and how.

    Returns:
        The command's own exit code; 128 + n if signal n ended it; 126 or 127 if it could not be started.

    Raises:
        UsageError: No command, or a level that this machine cannot run.
        InputError: The log cannot be written where it should be.
    """
    if not command:
        raise UsageError("record: give the command after --, as in trace-analyze record -- python serve.py")
    path = (options.output or Path(time.strftime("trace-%Y%m%dT%H%M%SZ.log", time.gmtime()))).absolute()
    if path.is_dir():
        raise UsageError(f"-o {options.output}: is a folder; give the name of the log to write in it")
    ops = path.with_name(path.name + ".ops")
    plan = plan_switches(command, options.target, options.level, os.environ, coredump=path, ops=ops)
    missing = _not_startable(plan.command[0])
    if missing is not None:
        _say(f"{plan.command[0]}: {'not executable' if missing == EXIT_NOT_EXECUTABLE else 'not found'}")
        return missing
    if not options.quiet:
        _announce(plan, path)
    return _Recording(plan, options, path, ops).run()


def _not_startable(program: str) -> int | None:
    if shutil.which(program) is not None:
        return None
    return EXIT_NOT_EXECUTABLE if Path(program).exists() else EXIT_NOT_FOUND


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be there to read it
        sys.stderr.write(f"trace-analyze record: {text}\n")
        sys.stderr.flush()


def _announce(plan: Plan, path: Path) -> None:
    for one in plan.switches:
        if not one.kept:
            _say(f"set {one.name}={one.value}   # {one.why}")
    for note in plan.notes:
        _say(note)
    _say(f"log {path}")


class _Recording:
    """One run of the command, from its start to the trailer."""

    def __init__(self, plan: Plan, options: RecordOptions, path: Path, ops: Path) -> None:
        self._plan = plan
        self._options = options
        self._path = path
        self._clock = Clock()
        self._child: subprocess.Popen[bytes] | None = None
        self._mark = f"{MARKER_VARIABLE}={uuid.uuid4().hex}"
        wants_ops = any(one.value == str(ops) and not one.kept for one in plan.switches)
        self._losses = Losses(_say)
        inputs = path.with_name(path.name + ".inputs")
        self._watch = OpsWatch(ops, inputs, self._losses) if wants_ops else None
        self._rings = ops
        self._asked: list[int] = []  # signals that came for the command

    def run(self) -> int:
        started_s = time.monotonic()
        with _forwarding(self), owned(self._rings) if self._watch else contextlib.nullcontext():
            log = self._open()
            try:
                code = self._run(log, started_s)
            finally:
                log.close()
        if (told := self._losses.told()) is not None:
            _say(told)
        return code

    def forward(self, number: int) -> None:
        """Pass a signal on to the command; one that comes before it runs, as soon as it does."""
        self._asked.append(number)
        if self._child is not None:
            self._child.send_signal(number)

    def note(self, number: int) -> None:
        """A signal that the terminal sends to the command itself."""
        self._asked.append(number)

    def _open(self) -> LogFile:
        try:
            check_not_recorded(self._path)
            if self._watch is not None:
                self._watch.prepare()
            return LogFile(
                self._path,
                max_bytes=self._options.max_bytes,
                keep=self._options.keep,
                header=self._header,
                losses=self._losses,
            )
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror or error}") from error

    def _run(self, log: LogFile, started_s: float) -> int:
        asked = VersionsAsked(self._plan.command)
        child = self._start()
        tree = ProcessTree(child.pid, self._mark)
        with child:
            self._child = child
            for number in list(self._asked):  # came before there was a command
                child.send_signal(number)
            self._write(log, "CHILD", pid=child.pid)
            relay = Relay(child, log, self._clock, self._watch)
            unterminated, held = relay.run()
            for stream in (child.stdout, child.stderr):
                if stream is not None:
                    stream.close()
            code = child.wait()
        if _ENDING.intersection(self._asked):  # who ends the command ends what it has started
            tree.kill(GRACE_S)
        if self._watch is not None:
            if code:
                log.write(self._watch.lines())
            self._watch.clear()
        duration_s = time.monotonic() - started_s
        self._write(
            log, "EXIT", signal=_signal_name(code), code=_shell_code(code), duration_s=f"{duration_s:.3f}"
        )
        log.flush()  # what follows asks other programs
        versions = asked.result(VERSIONS_WAIT_S, lambda: bool(_ENDING.intersection(self._asked)))
        self._write(log, "VERSION", **versions.packages)
        for gpu in versions.gpus:
            self._write(log, "GPU", **gpu)
        self._write(
            log,
            "END",
            bytes=relay.payload_bytes,
            lost_bytes=log.lost_bytes,
            unterminated=",".join(unterminated) or "none",
            open=",".join(held) or "none",
        )
        return _shell_code(code)

    def _start(self) -> subprocess.Popen[bytes]:
        name, _, value = self._mark.partition("=")
        return subprocess.Popen(
            self._plan.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**self._plan.environment(os.environ), name: value},
        )

    def _header(self, number: int) -> bytes:
        """Top of each file: after a rotation the switches are still known."""
        start = {
            "command": shlex.join(self._plan.command),
            "target": self._options.target,
            "level": self._options.level,
            "host": socket.gethostname(),
            "file": number,
        }
        lines = [render_line("START", start)]
        lines += [render_line("SET", {"name": s.name, "value": s.value}) for s in self._plan.switches]
        return self._stamped(lines)

    def _stamped(self, lines: list[str]) -> bytes:
        text = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
        return stamp_lines(text, self._clock.now_ns(), "stderr")

    def _write(self, log: LogFile, word: str, **pairs: object) -> None:
        log.write(self._stamped([render_line(word, pairs)]))


def _signal_name(code: int) -> str | None:
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal
        return f"SIG{-code}"


def _shell_code(code: int) -> int:
    return code if code >= 0 else EXIT_SIGNAL - code


@contextlib.contextmanager
def _forwarding(recording: _Recording) -> Iterator[None]:
    """Signals that reach us go to the command, which decides; we end when it does.

    Ctrl-C on a terminal reaches the whole foreground group, the command too: a second one from us would make
    many servers give up their orderly shutdown.
    """

    def forward(number: int, _frame: FrameType | None) -> None:
        if number in _FROM_TERMINAL and _in_foreground():
            recording.note(number)
        else:
            recording.forward(number)

    # What is ignored stays so, for the command too (nohup).
    heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # standard input is no terminal
        return False
