"""What to run next where a process of the host died of a signal (formats.md 3.21)."""

from __future__ import annotations

from analyzer.advice.commands import COMMAND
from analyzer.advice.table import KILLS
from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.tables.programs import program_row
from analyzer.witness import witness_named

_JOURNAL = "journalctl -k --since '-1 day' | grep -i -E 'killed process|oom'"
_STOPS = "journalctl --since '-1 day' | grep -i -E 'stopping|terminat|killing|oom'"
_STACK_SHOWN = "Fatal Python error"  # faulthandler was on
_HEAP = ("double free", "free():", "malloc", "corrupt", "munmap_chunk", "realloc()")
_GO = "segmentation violation"  # Go's word for it
_COMPILER = "modular/modular/issues"  # Mojo's compiler asks for a report of its own crash
_SHARED = ("out of shared memory", "insufficient shared memory", "shared memory limit")


def crash_steps(fault: FaultRecord) -> list[NextStep]:
    """Commands in the order in which they should be tried: first those that need no further run."""
    if fault.name == "SIGKILL":
        return killed_steps()
    if fault.name in {"SIGTERM", "SIGINT", "SIGHUP"}:
        return stopped_steps()
    steps = []
    if is_bus_error(fault):
        steps += shared_memory_steps()
    if _is_signal(fault, "SIGILL", "Illegal instruction"):
        why = "the instructions of this CPU beside those that the library was built for (AVX-512, AMX ...)"
        steps.append(NextStep(command="lscpu | grep Flags", why=why))
    if any(word in fault.text for word in _HEAP):
        why = "broken host memory is met later than it is made: checks it at each call of the allocator"
        command = f"LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 {COMMAND}"
        steps.append(NextStep(command=command, why=why))
    return steps + _stacks(fault)


def killed_steps() -> list[NextStep]:
    """Nobody can write why after SIGKILL; the driver log does, if the operating system sent it."""
    why = "the driver log tells whom the system killed for memory; nothing there: somebody else did"
    return [
        NextStep(command=KILLS, why=why),
        NextStep(command=_JOURNAL, why="the same where dmesg is not allowed, or the host has booted since"),
    ]


def stopped_steps() -> list[NextStep]:
    """Who asked a process to stop is in none of its own lines."""
    return [
        NextStep(
            command=_STOPS,
            why="who asked it to stop: a service manager, a scheduler or a person (Kubernetes: kubectl "
            "describe pod, Slurm: sacct)",
        )
    ]


def is_bus_error(fault: FaultRecord) -> bool:
    """SIGBUS: mostly a mapped file or shared memory without room behind it."""
    return _is_signal(fault, "SIGBUS", "us error")


def shared_memory_steps() -> list[NextStep]:
    """The usual cause of SIGBUS in a container: 64 MB of /dev/shm."""
    return [
        NextStep(
            command="df -h /dev/shm",
            why="a bus error comes mostly from shared memory or a mapped file without room: a container has "
            "64 MB of /dev/shm unless told otherwise",
        ),
        NextStep(
            command="docker run --shm-size=16g <its other options>   # Kubernetes: emptyDir, medium: Memory, "
            "at /dev/shm",
            why="if it is full or small: more room",
        ),
    ]


def lacks_shared_memory(text: str) -> bool:
    """Whether a message tells that shared memory of the host is used up; a GPU has some too."""
    return any(word in text for word in _SHARED)


def _is_signal(fault: FaultRecord, name: str, words: str) -> bool:
    return fault.name == name or words in fault.text


def _stacks(fault: FaultRecord) -> list[NextStep]:
    """Python's stack and the native one."""
    pid = f" {fault.pid}" if fault.pid is not None and fault.kind == "host_segfault" else ""
    why = "if the host keeps core files: the native stack of this crash, without a run"
    steps = [NextStep(command=f"coredumpctl info{pid}", why=why)]
    if not _is_other_program(fault) and not fault.text.startswith(_STACK_SHOWN):
        why = "prints the Python stack at the signal (where it is Python), and leaves a core file for gdb"
        steps.append(NextStep(command=f"ulimit -c unlimited; PYTHONFAULTHANDLER=1 {COMMAND}", why=why))
    why = "the native stack at the crash (of a worker of a server: gdb -batch -ex c -ex bt -p PID)"
    return [*steps, NextStep(command=f"gdb -batch -ex run -ex bt --args {COMMAND}", why=why)]


def _is_other_program(fault: FaultRecord) -> bool:
    row = program_row(witness_named(fault.witness).program)
    return (row is not None and not row.python) or any(word in fault.text for word in (_COMPILER, _GO))
