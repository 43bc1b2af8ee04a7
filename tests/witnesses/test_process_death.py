"""How processes die (formats.md 3.21)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from analyzer.model import Advice, FaultRecord, Reading
from analyzer.pipeline import analyze
from analyzer.witnesses.process_death import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

FATAL = """\
Fatal Python error: Segmentation fault

Thread 0x00007ee43dfff640 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait

Current thread 0x00007f3fb62b3140 (most recent call first):
  File "/opt/venv/lib/python3.12/site-packages/torch/package.py", line 1045 in _load_aoti
  File "/srv/app/torch_cases.py", line 158 in <module>

Extension modules: numpy._core._multiarray_umath (total: 1)
Segmentation fault (core dumped)"""
LINES = FATAL.split("\n")
DUMP = """\
PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace.
Stack dump:
0.\tProgram arguments: mojo run x.mojo
Stack dump without symbol names (ensure you have llvm-symbolizer in your PATH):
0  mojo 0x0000563b10540e29"""


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_the_innermost_frame_comes_first(read: Reader) -> None:
    """Other than in a traceback; of several threads the current one died."""
    fatal = faults(read(WITNESS, FATAL))[0]
    assert (fatal.kind, fatal.line, fatal.last_line) == ("host_segfault", 1, 10)
    assert fatal.location is not None
    assert (fatal.location.function, fatal.location.line) == ("_load_aoti", 1045)
    assert fatal.python is not None
    assert (fatal.python.file, fatal.python.line) == ("/srv/app/torch_cases.py", 158)


def test_the_stacks_belong_to_the_death(read: Reader) -> None:
    reading = read(WITNESS, FATAL)
    assert sorted([*reading.parsed, *reading.continuation]) == [1, 3, 4, 6, 7, 8, 10, 11]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Aborted", "host_abort"),
        ("Bus error", "host_segfault"),
        ("Illegal instruction", "host_abort"),
        ("Cannot recover from stack overflow.", "host_abort"),
    ],
)
def test_kinds_of_fatal_errors(read: Reader, words: str, kind: str) -> None:
    (fault,) = faults(read(WITNESS, f"Fatal Python error: {words}"))
    assert (fault.kind, fault.relayed) == (kind, False)


@pytest.mark.parametrize("cut", range(len(LINES)))
def test_a_death_cut_anywhere_is_read(read: Reader, cut: int) -> None:
    head, tail = read(WITNESS, LINES[:cut]), read(WITNESS, LINES[cut:])
    assert not head.losses
    assert not tail.losses
    assert len(faults(head)) == (cut > 0)


def test_deaths_of_two_processes_interleave() -> None:
    log = MemoryLog([line for line in LINES for _ in range(2)], ["a", "b"] * len(LINES))
    found = [fault for fault in faults(WITNESS.read(log.gated(WITNESS), log)) if not fault.relayed]
    assert [(fault.process, fault.location and fault.location.function) for fault in found] == [
        ("a", "_load_aoti"),
        ("b", "_load_aoti"),
    ]


def test_a_stack_of_a_living_process_is_no_death(read: Reader) -> None:
    """On a signal, or after a time, the fault handler prints the same stacks."""
    assert not read(WITNESS, LINES[2:8]).records


def test_a_stack_dump_is_one_abort(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, DUMP))
    assert (fault.kind, fault.line, fault.last_line) == ("host_abort", 1, 4)
    assert fault.text.endswith("Program arguments: mojo run x.mojo")
    assert fault.name is None


def test_a_stack_dump_beside_the_sanitizers_start_is_harmless(read: Reader) -> None:
    """formats.md 3.10: its injection meets Mojo's start-up."""
    (record,) = read(WITNESS, "close: Bad file descriptor (9)\n" + DUMP).records
    assert isinstance(record, Advice)


@pytest.mark.parametrize(
    ("line", "name", "pid"),
    [
        ("Segmentation fault (core dumped)", "SIGSEGV", None),
        ("Aborted (core dumped)", "SIGABRT", None),
        ("Killed", "SIGKILL", None),
        ("[1]    3451 IOT instruction (core dumped)  python serve.py", "SIGABRT", 3451),
        ("./serve.sh: line 12:  3451 Segmentation fault      (core dumped) python serve.py", "SIGSEGV", 3451),
        ("run.sh: line 3:   345 Killed                  python serve.py", "SIGKILL", 345),
        ("100%|####| 3/3 [00:01<00:00, 3.3it/s]Segmentation fault (core dumped)", "SIGSEGV", None),
        ("vllm-1 exited with code 137", "SIGKILL", None),
        ("process exited, exitcode: -9", "SIGKILL", None),
        ("returned non-zero exit status 134.", "SIGABRT", None),
        ("exited with code 143", "SIGTERM", None),
        ("Bash exited with code '139'.", "SIGSEGV", None),
        ("worker 3 gave no answer, exit code: -11", "SIGSEGV", None),
        ("[1]    2226 segmentation fault (core dumped)  mojo run x.mojo", "SIGSEGV", 2226),
        ("[2]  + 2226 illegal hardware instruction (core dumped)  python x.py", "SIGILL", 2226),
    ],
)
def test_shells_and_launchers_tell_a_signal(read: Reader, line: str, name: str, pid: int | None) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.name, fault.pid, fault.relayed) == (name, pid, True)


def test_the_recorders_own_trailer_tells_a_death(read: Reader) -> None:
    """A command that was killed leaves no word of its own."""
    (fault,) = faults(read(WITNESS, "[RECORD] EXIT signal=SIGKILL code=137 duration_s=12.3"))
    assert (fault.name, fault.relayed) == ("SIGKILL", True)


@pytest.mark.parametrize("end", ["code=0", "code=3", "signal=SIGTERM code=143", "signal=SIGINT code=130"])
def test_a_recorded_end_that_was_asked_for_is_no_death(read: Reader, end: str) -> None:
    reading = read(WITNESS, f"[RECORD] EXIT {end} duration_s=12.3")
    assert not reading.records
    assert not reading.losses


@pytest.mark.parametrize(
    "line",
    [
        "Note: exit code 137 means OOM killer; exit code 139 Segmentation fault",
        "no process exited with exit code 139 in the last hour",
        "exit status 139 is a segmentation fault",
    ],
)
def test_a_sentence_about_exit_codes_is_no_death(read: Reader, line: str) -> None:
    reading = read(WITNESS, line)
    assert not reading.records
    assert not reading.losses


@pytest.mark.parametrize(
    "line", ["      Exit Code:    139", "srun: error: gpu03: task 3: Aborted (core dumped)"]
)
def test_what_other_witnesses_tell_is_told_once(read: Reader, line: str) -> None:
    """Kubernetes and Slurm say more than the exit code, in lines of their own."""
    reading = read(WITNESS, line)
    assert not reading.records
    assert not reading.losses


@pytest.mark.parametrize("line", ["exit code: 0", "exit status 2", "exited with code 1"])
def test_other_exit_codes_say_nothing(read: Reader, line: str) -> None:
    reading = read(WITNESS, line)
    assert not reading.records
    assert not reading.losses


@pytest.mark.parametrize(
    "line",
    [
        "close: Bad file descriptor (9)",
        "open /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq: No such file or directory (2)",
    ],
)
def test_what_the_crash_handler_could_not_read_is_no_death(read: Reader, line: str) -> None:
    reading = read(WITNESS, line)
    assert (reading.records, reading.parsed, reading.losses) == ([], [1], [])


def test_windows_has_codes_of_its_own(read: Reader) -> None:
    assert faults(read(WITNESS, "exit status 0xc0000005"))[0].kind == "host_segfault"
    negative = faults(read(WITNESS, "Process finished with exit code -1073741819 (0xC0000005)"))[0]
    assert (negative.kind, negative.name) == ("host_segfault", "0xc0000005")


@pytest.mark.parametrize(
    "line",
    [
        "double free or corruption (!prev)",
        "free(): invalid pointer",
        "corrupted size vs. prev_size",
        "terminate called without an active exception",
        "*** stack smashing detected ***: terminated",
    ],
)
def test_the_runtime_aborts(read: Reader, line: str) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.kind, fault.relayed) == ("host_abort", False)


@pytest.mark.parametrize(
    "line",
    [
        "Aborted request chatcmpl-1.",
        "Out of memory: Killed process 345 (python3) total-vm:1",
        "Worker exception, shutting down: Segmentation fault",
        "Exception raised from x at y.cpp:43 (most recent call first):",
        "Traceback (most recent call last): Aborted",
    ],
)
def test_other_programs_use_the_words_too(read: Reader, line: str) -> None:
    reading = read(WITNESS, line)
    assert (reading.records, reading.losses) == ([], [])
    assert reading.not_mine == [1]


def test_a_hundred_thousand_deaths_are_cheap() -> None:
    """A crash loop under a supervisor."""
    log = MemoryLog(["Fatal Python error: Aborted", "exited with code 137"] * 50_000)
    gated = log.gated(WITNESS)
    begin = time.perf_counter()
    found = faults(WITNESS.read(gated, log))
    assert time.perf_counter() - begin < 10.0
    assert sum(fault.count for fault in found) == 100_000


def test_a_shell_that_says_no_more_than_the_word_is_heard(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text("step 100\nKilled\n")
    result = analyze([str(log)])
    assert [(fault.role, fault.name, fault.line) for fault in result.faults] == [("root", "SIGKILL", 2)]
    assert result.conclusion.cause_class is None


@pytest.mark.parametrize(
    "line",
    [
        "*** SIGABRT received by PID 311 (TID 311) on cpu 3 from PID 311; ***",
        "*** SIGABRT (@0x137) received by PID 311 (TID 0x7f00aa) from PID 311; stack trace: ***",
    ],
)
def test_the_handler_of_glog_and_abseil_speaks_for_its_process(read: Reader, line: str) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.name, fault.pid, fault.relayed) == ("SIGABRT", 311, False)


@pytest.mark.parametrize(
    "line",
    [
        "*** SIGTERM received by PID 311 (TID 311) on cpu 3 from PID 1; stack trace: ***",
        "  traceback : Signal 9 (SIGKILL) received by PID 214033",  # torchrun
        'response: "*** SIGABRT received by PID 311 (TID 311) on cpu 3 from PID 311; ***"',
    ],
)
def test_a_signal_that_was_asked_for_quoted_or_is_read_elsewhere(read: Reader, line: str) -> None:
    reading = read(WITNESS, line)
    assert (reading.records, reading.losses) == ([], [])


def test_the_word_of_a_shell_behind_a_progress_bar_is_heard(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text("Capturing CUDA graphs:  37%|###7      | 13/35 [00:07<00:12,  1.79it/s]Killed\n")
    (fault,) = analyze([str(log)]).faults
    assert (fault.role, fault.name, fault.line) == ("root", "SIGKILL", 1)
