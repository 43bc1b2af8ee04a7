"""Whose process the kernel killed for memory, and whether a program failed of it (formats.md 3.4, 3.21).

A host that runs out of memory kills what is largest: a browser, a build, the model server. The kernel's log
has them all, so a kill explains the failure of a program only by something that both sides tell: the pid, the
name of the process, a SIGKILL of the program at that time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analyzer.incident.driver_links import Links, names_program, pid_of
from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole, place_of
from analyzer.model import FaultRecord, KilledProcess
from analyzer.schema import Role, Value
from analyzer.traits import is_victim
from analyzer.witness import is_unexplained

KILL = "SIGKILL"
_KILLED = "the kernel killed a process of the program: what others report is its consequence"
_NEAR_LINES = 50  # where there is no clock
_AFTER_LINES = 8  # a shell tells the signal of its job before the kernel's log is written out
# What model servers and their workers are called; the kernel cuts names to 15 characters.
_SERVERS = re.compile(
    r"(?i)python|pt_|vllm|enginecor|sglang|ray::|llama|ollama|trtllm|triton|mojo|max(?:$|-|_)|modular"
    r"|text-generation|text-embedding|tgi|torchrun|mpirun|lmdeploy|mlc|uvicorn|gunicorn|koboldcpp|localai"
)


def victim_of(record: FaultRecord) -> KilledProcess | None:
    """Whom a text says to have been killed for memory; null = it names nobody."""
    return record.detail if isinstance(record.detail, KilledProcess) else None


def is_host_kill(record: FaultRecord) -> bool:
    """A message of the system about a kill for memory; others who tell one count where it is of no server."""
    victim = victim_of(record)
    return victim is not None and (victim.by_system or not _SERVERS.match(victim.name))


class Program(Value):
    """What a log tells of the processes that it is of: their pids and their tags."""

    pids: frozenset[int]
    processes: tuple[str, ...]

    def has(self, victim: KilledProcess) -> bool:
        """Whether a process of the log was killed: by its pid, or by the name of a server or of a tag."""
        if victim.pid in self.pids or _SERVERS.match(victim.name):
            return True
        return any(names_program(victim.name, process) for process in self.processes)


def program_of(records: Sequence[FaultRecord]) -> Program:
    """The processes that tell the faults of a log; what the kernel says is of none."""
    own = [one for one in records if one.site != "driver_log" and not is_host_kill(one)]
    pids = {pid for one in own for pid in (one.pid, pid_of(one.process)) if pid is not None}
    processes = tuple(dict.fromkeys(one.process for one in own if one.process))
    return Program(pids=frozenset(pids), processes=processes)


def explains_end(kill: FaultRecord, root: FaultRecord, program: Program) -> bool:
    """Whether a program failed because the kernel killed a process of it.

    What names a cause of its own (a CUDA error, a failed allocation) failed of that, unless a process with a
    pid of this log was killed before. Who only lost somebody, or was killed, failed of the kill.
    """
    links = Links([root], root)
    victim = victim_of(kill)
    if victim is None or links.is_apart(kill) or links.is_long_after(kill):
        return False
    if not _tells_no_cause(root):
        return victim.pid in program.pids and victim.pid != root.pid and _is_before(kill, root)
    return program.has(victim) or (_was_killed(root) and _is_near(kill, root, links))


def killed_program(incident: Incident) -> Iterator[Change]:
    """A kill of a process of the program is the root: what others report is its consequence."""
    root = incident.fault
    if root is None:
        return
    records, program = incident.records, program_of([incident.records[one] for one in incident.compared])
    kills = [index for index in incident.compared if is_host_kill(records[index])]
    first = next((index for index in kills if explains_end(records[index], root, program)), None)
    if first is None:
        return
    kill = records[first]
    yield SetRole(index=first, role=RoleDecision(role="root", reason=_KILLED, lines=(place_of(root),)))
    why = RoleDecision(role="cascade", reason=why_killed(kill), lines=(place_of(kill),))
    for index in incident.compared:
        one = records[index]
        own = one.site != "driver_log" and not is_host_kill(one) and not one.advice
        if own and explains_end(kill, one, program):
            yield SetRole(index=index, role=why)


def other_kills(incident: Incident) -> Iterator[Change]:
    """A kill that is not the root is of the same shortage, or of another program."""
    program = program_of([incident.records[index] for index in incident.compared])
    for index in incident.compared:
        record = incident.records[index]
        if index != incident.root and is_host_kill(record):
            role, reason = role_of_kill(record, incident.fault, program)
            lines = (place_of(incident.fault),) if incident.fault else ()
            yield SetRole(index=index, role=RoleDecision(role=role, reason=reason, lines=lines))


def role_of_kill(kill: FaultRecord, root: FaultRecord | None, program: Program) -> tuple[Role, str]:
    """The role of a kill that is not the root, and why."""
    victim = victim_of(kill)
    who = victim.words if victim else "a process"
    if root is not None and victim is not None:
        if victim.pid in {root.pid, pid_of(root.process)}:
            return "cascade", f"the process of line {root.line} was killed then"
        links = Links([root], root)
        both = is_host_kill(root) and program.has(victim)
        if both and (links.is_at_once(kill) or _are_close_lines(kill, root)):
            return "cascade", f"memory was still short after the kill at line {root.line}"
    return "bystander", f"the kernel killed {who} for memory: nothing links it with this program"


def why_killed(kill: FaultRecord) -> str:
    """Why what a program tells is a consequence of a kill."""
    victim = victim_of(kill)
    who = victim.words if victim else "a process of it"
    return f"the kernel killed {who} for memory (line {kill.line})"


def _was_killed(root: FaultRecord) -> bool:
    return root.name == KILL or (root.relayed and root.kind == "out_of_memory")


def _tells_no_cause(root: FaultRecord) -> bool:
    """A kill, the loss of somebody, an exception that no witness knows."""
    return root.relayed or root.name == KILL or is_victim(root) or is_unexplained(root)


def _is_before(kill: FaultRecord, root: FaultRecord) -> bool:
    if None not in {kill.time_ns, root.time_ns} and kill.clock == root.clock and kill.clock is not None:
        return (kill.time_ns or 0) <= (root.time_ns or 0)
    return kill.source == root.source and kill.line < root.line


def _is_near(kill: FaultRecord, root: FaultRecord, links: Links) -> bool:
    return links.is_at_once(kill) or (kill.time_ns is None and _are_close_lines(kill, root))


def _are_close_lines(kill: FaultRecord, root: FaultRecord) -> bool:
    same = kill.source == root.source and (kill.time_ns is None or root.time_ns is None)
    return same and -_AFTER_LINES <= root.line - kill.line <= _NEAR_LINES
