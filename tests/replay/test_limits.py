"""What a child may hold and print, and what is told of it; and that no child outlives its parent."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analyzer.cli.replay_options import parse_memory_limit
from analyzer.errors import UsageError
from analyzer.replay import output_file
from analyzer.replay.attempts import ReplayOptions
from analyzer.replay.memory import SHARE, held_bytes, memory_limit
from analyzer.replay.output_file import OutputFile
from analyzer.replay.processes import all_processes
from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport
from analyzer.replay.supervisor import run_child
from tests.replay import children
from tests.replay.results import log
from tests.replay.test_supervisor import MIB

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile(rb"\[trace-analyze: (\d+) bytes of this output are left out here\]\n")


def printed(lines: int, size: int = 100) -> bytes:
    return b"".join(b"line %08d %s\n" % (number, b"x" * size) for number in range(lines))


@pytest.mark.parametrize("lines", [10, 9_000, 9_001, 40_000])
@pytest.mark.parametrize("trims", [True, False])
def test_long_output_is_kept_as_head_and_tail_of_whole_lines(
    lines: int, trims: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file system makes no holes, head and tail are joined at the end all the same."""
    if not trims:
        monkeypatch.setattr(output_file, "_punch", lambda *_: False)
    whole = printed(lines)
    sink = OutputFile(tmp_path / "output", limit_bytes=MIB)
    for at in range(0, len(whole), 200_000):
        os.write(sink.fileno(), whole[at : at + 200_000])
        assert sink.trim()
    sink.finish()
    kept = (tmp_path / "output").read_bytes()
    if len(whole) <= MIB:
        assert (kept, sink.left_out_bytes) == (whole, 0)
        return
    head, told, tail = LEFT_OUT.split(kept)
    assert len(kept) <= MIB + 200
    assert int(told) == sink.left_out_bytes == len(whole) - len(head) - len(tail)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert head.endswith(b"\n")
    assert tail.startswith(b"line ")


def test_the_disk_never_holds_much_more_than_the_limit(tmp_path: Path) -> None:
    sink = OutputFile(tmp_path / "output", limit_bytes=4 * MIB)
    most = 0
    for _ in range(200):
        os.write(sink.fileno(), b"x" * (MIB // 2 - 1) + b"\n")
        sink.trim()
        most = max(most, (tmp_path / "output").stat().st_blocks * 512)
    sink.finish()
    assert most <= 6 * MIB
    assert (tmp_path / "output").stat().st_size <= 5 * MIB


def test_a_child_that_floods_goes_on_and_its_last_words_are_there(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(60000): print('x' * 1000)\nsys.exit('the last words')"
    outcome = children.run(children.python(code), tmp_path, output_limit_bytes=4 * MIB)
    assert (outcome.exit_code, outcome.killed_for) == (1, None)
    text = (tmp_path / "output").read_bytes()
    assert text.endswith(b"the last words\n")
    assert len(text) < 5 * MIB
    assert "left out" in outcome.limits_told[0]


def replayed(code: str, folder: Path, memory_limit_bytes: int | None = None) -> ReplayReport:
    options = ReplayOptions(folder=folder, ladder=False, memory_limit_bytes=memory_limit_bytes)
    return replay_program(log(), children.python(code), options)


def test_the_verdict_says_when_our_memory_limit_ended_it(tmp_path: Path) -> None:
    report = replayed(children.EATS_MEMORY, tmp_path, memory_limit_bytes=200 * MIB)
    assert report.verdict == "out_of_memory"
    assert "ended by trace-analyze: its processes held more than 210 MB of memory" in report.statement


def test_the_verdict_says_when_output_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "for n in range(30000): print('x' * 100)"
    limited = functools.partial(run_child, output_limit_bytes=MIB)
    monkeypatch.setattr("analyzer.replay.attempts.run_child", limited)
    report = replayed(code, tmp_path)
    assert "its output is kept as head and tail" in report.statement
    assert any("left out" in note for note in report.attempts[0].notes)


def test_the_default_limit_is_most_of_what_is_free() -> None:
    limit = memory_limit(None)
    assert limit is not None
    free = int(
        next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvail" in line).split()[1]
    )
    assert 0 < limit <= free * 1024 * SHARE * 1.2
    assert memory_limit(0) is None
    assert memory_limit(5) == 5


@pytest.mark.parametrize(
    ("text", "size"), [(None, None), ("none", 0), ("64G", 64 * 10**9), ("1500mb", 1500 * 10**6), ("7", 7)]
)
def test_sizes_of_the_limit(text: str | None, size: int | None) -> None:
    assert parse_memory_limit(text) == size


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1.5G", "²", "9" * 5000])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--memory-limit"):
        parse_memory_limit(text)


def test_weights_that_are_mapped_from_a_file_do_not_count(tmp_path: Path) -> None:
    """The kernel can take them back; a server with eight workers maps them eight times."""
    (tmp_path / "weights").write_bytes(b"x" * (64 * MIB))
    code = (
        "import mmap, sys; file = open(sys.argv[1], 'rb')\n"
        "data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "sum(data[::4096]); print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "weights")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        resident = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        held = held_bytes([child.pid])
        child.communicate()
    assert resident > 64 * MIB > held


def marked(mark: str) -> list[int]:
    found = []
    for process in all_processes():
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{process.pid}/environ").read_bytes() and process.state != "Z":
                found.append(process.pid)
    return found


def gone(mark: str, within_s: float = 15.0) -> bool:
    end = time.monotonic() + within_s
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not marked(mark)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGHUP", "SIGINT"])
def test_no_child_outlives_its_parent(name: str, tmp_path: Path) -> None:
    """Also where nothing of ours can run any more; a grandchild has left the session, ignoring SIGTERM."""
    mark = f"MARK=limits-{os.getpid()}-{name}"
    code = (
        "from pathlib import Path; from tests.replay import children\n"
        f"children.run(children.python(children.GRANDCHILD), Path({str(tmp_path)!r}), deadline_s=60)"
    )
    environment = {**os.environ, "MARK": mark.partition("=")[2]}
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment)
    end = time.monotonic() + 20
    while len(marked(mark)) < 4 and time.monotonic() < end:  # parent, keeper, child, grandchild
        time.sleep(0.05)
    assert len(marked(mark)) == 4
    parent.send_signal(signal.Signals[name])
    parent.wait(timeout=20)
    assert gone(mark)


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """Under nohup a hangup ends neither us nor the child."""
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from pathlib import Path; from tests.replay import children\n"
        f"done = children.run(children.python('import time; time.sleep(2)'), Path({str(tmp_path)!r}))\n"
        "print(done.killed_for, done.exit_code)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while not (tmp_path / "output").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    parent.send_signal(signal.SIGHUP)
    assert parent.communicate(timeout=20)[0] == "None 0\n"
