"""How a process ended, in the words of whoever started it (formats.md 3.21).

DeepSpeed, Accelerate, Ollama, Open MPI and scripts of all kinds waited for it: they know its signal or exit
code, never the cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.numbers import MAX_RANK, integer, natural
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen
from analyzer.witnesses.server_lines import (
    Signal,
    death,
    read_server,
    relayed,
    signal_named,
    signal_of_exit,
)

NAME = "launchers"
_ENDS = (
    "exited with signal ",
    "exited on signal ",
    "exited due to signal ",
    "killed by signal ",
    "terminated by signal ",
    "died with signal ",
    "died from signal ",
    "died by signal ",
    "crashed with signal ",
)
_FORMS = (
    Form(rule="returned", begins=r"exits with return code = -?[0-9]"),
    Form(rule="signalled", begins=r"died with <Signals\.SIG[A-Z0-9]+: [0-9]+>"),
    Form(rule="runner", begins=r"llama runner process has terminated:"),
    Form(rule="abort", begins=r"MPI_ABORT was invoked on rank [0-9]"),
    Form(
        rule="noticed", begins=r"noticed that process rank [0-9]+ with PID [0-9]+ on node .* exited on signal"
    ),
    Form(rule="caught", begins=r"\[[A-Za-z0-9_.\-]+:[0-9]+\] Signal: [A-Z][a-z A-Z]+ \([0-9]+\)"),
    Form(rule="by_signal", begins=rf"^.*?(?:{'|'.join(_ENDS)})(?:[0-9]|SIG[A-Z])"),
)
# ``process_death`` and ``supervisors`` read these behind the same words.
_READ_ELSEWHERE = ("signal: ", "exit status 0x")

# Who ended: told at the start of a message or behind a label, or with a number.
_WHO = re.compile(
    r"(?i)\b(?:worker|(?:sub)?process|child|rank|replica|shard|server|engine|scheduler|job|program|container"
    r"|command|task|pid)(?![a-z])"
)
_LABELLED = re.compile(r"(?:^|[:\]|>=\-\"'\[(])\s*$")
_NUMBER = re.compile(r"[0-9]")
_PID = re.compile(r"(?i)\bpid[ :=]+([0-9]+)")
_RANK = re.compile(r"(?i)\brank[ :=]+([0-9]+)")
# Words of a text that explains, asks, denies or expects; a worker of a data loader is told by PyTorch.
_SAYS_MORE = re.compile(
    r"(?i)\b(?:if|when|whenever|that|which|why|how|what|means?|would|could|should|might|(?-i:may)|can|cannot|you|your"
    r"|is|are|be|being|gets?|usually|often|typically|likely|perhaps|probably|e\.g|example|no|not|never|none|any"
    r"|every|each|or|unless|until|because|DataLoader)\b|\?[\s\"']*$|(?<!un)expected|%[sd]|\$"
)
_CLAUSE = re.compile(r"[.!,;]")  # a launcher may guess the reason in the next one
_COMMENT = re.compile(r"\s*(?:#|//|[*+-] )")  # or an item of a list in Markdown
# What a model was asked or answered.
_QUOTED = re.compile(r"(?i)\b(?:prompt|content|text|response|answer|output|completion|reply)[\"']?\s*[:=]")
# A sentence that goes on behind the signal.
_SENTENCE = re.compile(r"\s+(?!(?:after|at|on|while|during|and|core|in)\b)[a-z]+\s")
_ASKED = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_server(frame, fetch, NAME, _FORMS, _BUILDS)


def _ended(seen: Seen, code: int, text: str) -> FaultRecord | None:
    """The end by a signal, or with an exit code; null = it ended well."""
    signal = signal_of_exit(code)
    if signal is not None:
        return msgspec.structs.replace(death(seen, NAME, signal, text), relayed=True)
    return None if code == 0 else relayed(seen, NAME, "peer_lost", text)


def _returned(seen: Seen) -> Sequence[Record]:
    """The command that DeepSpeed prints before it is that of its last rank, whichever rank failed."""
    code = seen.number("EXIT") or 0
    fault = _ended(seen, code, f"a rank of the launcher exits with return code {code}")
    return [] if fault is None else [fault]


def _signalled(seen: Seen) -> Sequence[Record]:
    name, number = seen.get("NAME"), seen.number("NUMBER") or 0
    fault = _ended(seen, -number, f"the command died with {name}")
    return [] if fault is None else [fault]


def _runner(seen: Seen) -> Sequence[Record]:
    """Ollama keeps the last line that its runner wrote as the reason, or the exit status."""
    why = (seen.get("WHY") or "").strip().strip('"')
    if why.startswith(_READ_ELSEWHERE):
        return []
    return [relayed(seen, NAME, "peer_lost", f"llama runner process has terminated: {why}")]


def _abort(seen: Seen) -> Sequence[Record]:
    """A rank ended the whole job, mostly because of an exception that it printed itself."""
    return [_of_rank(seen, relayed(seen, NAME, "peer_lost"))]


def _noticed(seen: Seen) -> Sequence[Record]:
    """Open MPI names the first process of the job that ended so; older versions know its pid."""
    fault = _ended(seen, -(seen.number("NUMBER") or 0), f"mpirun {seen.text.strip()}")
    pid = seen.number("PID") or None
    return [] if fault is None else [_of_rank(seen, msgspec.structs.replace(fault, pid=pid or fault.pid))]


def _caught(seen: Seen) -> Sequence[Record]:
    """The handler of Open MPI inside the process."""
    fault = _ended(seen, -(seen.number("NUMBER") or 0), seen.text.strip())
    return [] if fault is None else [msgspec.structs.replace(fault, pid=seen.number("PID"))]


def _by_signal(seen: Seen) -> Sequence[Record]:
    """Scripts, pools of workers and fish tell it in nearly the same words; so does who explains them."""
    signal = _signal(seen.get("SIGNAL") or "")
    before, behind = seen.get("BEFORE") or "", seen.get("TEXT") or ""
    start = _who(before)
    if signal is None or signal.name in _ASKED or start is None or _is_talk(before, behind):
        return []
    fault = death(seen, NAME, signal, seen.text[start:].strip(" \"'\\}"))
    pid, rank = _PID.search(before), _RANK.search(before)
    return [
        msgspec.structs.replace(
            fault,
            pid=integer(pid[1]) if pid else fault.pid,
            rank=integer(rank[1], MAX_RANK) if rank else fault.rank,
            relayed=True,
        )
    ]


def _signal(told: str) -> Signal | None:
    number = natural(told)
    return signal_named(told) if number is None else signal_of_exit(-number)


def _who(before: str) -> int | None:
    """Where the process is named that ended; null = one in general, or none."""
    found = _WHO.search(before)
    if found is None:
        return None
    named = _LABELLED.search(before[: found.start()]) or _NUMBER.search(before[found.end() :])
    return found.start() if named else None


def _is_talk(before: str, behind: str) -> bool:
    if _COMMENT.match(before) or _QUOTED.search(before) or _SENTENCE.match(behind):
        return True
    clause = _CLAUSE.split(behind, maxsplit=1)[0]
    return _SAYS_MORE.search(before) is not None or _SAYS_MORE.search(clause) is not None


def _of_rank(seen: Seen, fault: FaultRecord) -> FaultRecord:
    return msgspec.structs.replace(fault, rank=seen.number("RANK"))


_BUILDS = {
    "returned": _returned,
    "signalled": _signalled,
    "runner": _runner,
    "abort": _abort,
    "noticed": _noticed,
    "caught": _caught,
    "by_signal": _by_signal,
}
WITNESS = Witness(
    name=NAME,
    launcher=True,
    gates=(
        "exits with return code = ",
        "died with <Signals.SIG",
        "llama runner process has terminated:",
        "MPI_ABORT was invoked on rank ",
        *_ENDS,
        "] Signal: ",
    ),
    read=read,
    grammar="launchers.lark",
)
