"""Recording real child processes: nothing lost, the right exit code, a log after every death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.record.rotate import parse_size
from tests.record.children import Recorded, kill_orphan, python, read_lines, run, start

# Lines of both streams with every byte value, invalid UTF-8, carriage returns, and no line end at the end.
NOISE = r"""
import os, random
random.seed(7)
for i in range(400):
    data = random.randbytes(random.randrange(300))
    os.write(1 + i % 2, data + (b"\r50%\r" if i % 5 == 0 else b"\n"))
os.write(1, bytes(range(256)) * 3)
os.write(2, b"\xff\xfe half a character \xe2\x82")
"""


def write_megabytes(size_mb: int) -> str:
    """A program that writes numbered lines to both streams."""
    return f"""
import os
block = b"".join(b"%07d INFO engine step of a server, throughput 123.4 tokens/s\\n" % n for n in range(10000))
for n in range({size_mb} * 1000000 // len(block) + 1):
    view = memoryview(block)
    while view:
        view = view[os.write(1 + n % 2, view):]
"""


def check_nothing_lost(recorded: Recorded) -> None:
    assert recorded.stream("stdout") == recorded.stdout
    assert recorded.stream("stderr") == recorded.stderr
    for name in ("stdout", "stderr"):
        stamps = recorded.stamps(name)
        assert stamps == sorted(stamps)


def wait_for(text: bytes, log: Path) -> bytes:
    """What a log holds once ``text`` is in it, or after far more time than a flush takes."""
    end = time.monotonic() + 20
    found = b""
    while text not in found and time.monotonic() < end:
        time.sleep(0.05)
        found = b"".join(read_lines(log)) if log.exists() else b""
    return found


@pytest.mark.parametrize("suffix", ["log", "log.zst"])
def test_a_writer_of_20_megabytes_loses_nothing(tmp_path: Path, suffix: str) -> None:
    recorded = run(tmp_path / f"serve.{suffix}", python(write_megabytes(20)))
    assert recorded.code == 0
    assert len(recorded.stdout) + len(recorded.stderr) > 20_000_000
    check_nothing_lost(recorded)
    assert recorded.trailer.lost_bytes == 0


@pytest.mark.heavy
def test_a_writer_of_1_gigabyte_loses_nothing(tmp_path: Path) -> None:
    recorded = run(tmp_path / "serve.log", python(write_megabytes(1000)))
    assert recorded.code == 0
    check_nothing_lost(recorded)


@pytest.mark.parametrize("suffix", ["log", "log.zst"])
def test_binary_noise_and_unfinished_lines_come_through_unchanged(tmp_path: Path, suffix: str) -> None:
    recorded = run(tmp_path / f"serve.{suffix}", python(NOISE))
    assert recorded.code == 0
    check_nothing_lost(recorded)
    assert sorted(recorded.trailer.unterminated) == ["stderr", "stdout"]


def test_a_line_of_5_megabytes_is_written_in_parts(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(5): os.write(1, b'x' * 1_000_000)\nos.write(1, b' end\\nnext\\n')"
    recorded = run(tmp_path / "serve.log", python(code))
    check_nothing_lost(recorded)
    assert sum(b" stdout P " in line[:50] for line in recorded.lines) > 10
    assert max(map(len, recorded.lines)) < 500_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM])
def test_a_signal_death_is_128_plus_n_and_in_the_trailer(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        f"import os\nos.write(2, b'before\\n')\nos.write(1, b'cut of')\nos.kill(os.getpid(), {int(number)})"
    )
    recorded = run(tmp_path / "serve.log", python(code))
    assert recorded.code == 128 + number
    assert recorded.trailer.signal == number.name
    assert recorded.trailer.exit_code == 128 + number
    assert recorded.stream("stdout") == b"cut of"
    assert b"before\n" in recorded.stream("stderr")


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_the_exit_code_is_the_commands_own(tmp_path: Path, code: int) -> None:
    recorded = run(tmp_path / "serve.log", python(f"import sys; sys.exit({code})"))
    assert recorded.code == code
    assert recorded.trailer.exit_code == code
    assert recorded.trailer.signal is None


@pytest.mark.parametrize(("program", "code"), [("/no/such/program", 127), (__file__, 126)])
def test_what_cannot_be_started_ends_as_in_a_shell(tmp_path: Path, program: str, code: int) -> None:
    with start(tmp_path / "serve.log", [program]) as child:
        _, err = child.communicate(timeout=60)
    assert child.returncode == code
    assert program.encode() in err


def test_a_child_that_closes_its_streams_runs_on_and_is_waited_for(tmp_path: Path) -> None:
    code = (
        "import os, time\nos.write(2, b'bye\\n')\nos.close(2)\nos.write(1, b'more\\n')\nos.close(1)\n"
        "time.sleep(0.5)\nos._exit(9)"
    )
    recorded = run(tmp_path / "serve.log", python(code))
    assert recorded.code == 9
    check_nothing_lost(recorded)
    assert (recorded.trailer.duration_s or 0) >= 0.5


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_us(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\nprint('parent', flush=True)\n"
        "p = subprocess.Popen(['sleep', '60'])\nprint(p.pid, flush=True)\nsys.exit(5)"
    )
    begin = time.monotonic()
    recorded = run(tmp_path / "serve.log", python(code))
    pid = int(recorded.stream("stdout").split()[-1])
    os.kill(pid, signal.SIGKILL)
    assert recorded.code == 5
    assert time.monotonic() - begin < 30
    assert sorted(recorded.trailer.open_streams) == ["stderr", "stdout"]


def test_a_fork_that_outlives_its_parent_for_a_moment_is_recorded(tmp_path: Path) -> None:
    code = (
        "import os, time\nif os.fork() == 0:\n    time.sleep(0.5)\n    os.write(1, b'late child\\n')\n"
        "    os._exit(0)\nos.write(1, b'parent\\n')"
    )
    recorded = run(tmp_path / "serve.log", python(code))
    assert recorded.stream("stdout") == b"parent\nlate child\n"
    assert recorded.trailer.open_streams == []


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
)
def test_signals_reach_the_command(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda n, f: (print('got', n, flush=True), sys.exit(40)))\n"
        "print('ready', flush=True)\nsignal.pause()\nsignal.pause()"
    )
    with start(tmp_path / "serve.log", python(code)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        out, _ = child.communicate(timeout=60)
    assert out == f"got {int(number)}\n".encode()
    assert child.returncode == 40


@pytest.mark.parametrize("suffix", ["log", "log.zst"])
def test_a_kill_of_the_recorder_leaves_the_tail_on_disk(tmp_path: Path, suffix: str) -> None:
    log = tmp_path / f"serve.{suffix}"
    code = (
        "import time, os\nfor n in range(5000): os.write(2, b'line %d\\n' % n)\n"
        "print('done', flush=True)\ntime.sleep(60)"
    )
    with start(log, python(code)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        wait_for(b" stderr F line 4999\n", log)
        wait_for(b" stdout F done\n", log)
        child.kill()
        kill_orphan(log)
        child.communicate(timeout=60)
    text = b"".join(read_lines(log))
    assert b" stderr F line 4999\n" in text
    assert b" stdout F done\n" in text


def test_a_prompt_without_a_line_end_is_on_disk_while_it_waits(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    seen = tmp_path / "seen"
    code = (
        "import os, pathlib, time\nos.write(1, b'loading 50%')\n"
        f"while not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.05)\nos.write(1, b' done\\n')"
    )
    with start(log, python(code)) as child:
        waiting = wait_for(b" stdout P loading 50%\n", log)
        seen.touch()
        child.communicate(timeout=60)
    assert b" stdout P loading 50%\n" in waiting
    assert log.read_bytes().count(b" stdout F  done\n") == 1


def test_a_reader_that_goes_away_does_not_end_the_recording(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    code = "import os, time\nfor n in range(2000): os.write(1, b'line %d\\n' % n)\nos.write(2, b'end\\n')"
    with start(log, python(code)) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(timeout=60) == 0
        assert child.stderr is not None
        child.stderr.read()
    assert b" stdout F line 1999\n" in log.read_bytes()


def test_a_full_disk_does_not_end_the_command(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.symlink_to("/dev/full")
    with start(log, python("print('hello ' * 10)")) as child:
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out == b"hello " * 10 + b"\n"
    assert b"could not be written" in err


def test_a_log_that_is_there_is_kept_as_the_older_file(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    run(log, python("print('first')"))
    run(log, python("print('second')"))
    assert b"stdout F first\n" in (tmp_path / "serve.log.1").read_bytes()
    assert b"stdout F second\n" in log.read_bytes()


@pytest.mark.parametrize("suffix", ["log", "log.zst"])
def test_rotation_keeps_n_older_files_cut_between_lines(tmp_path: Path, suffix: str) -> None:
    log = tmp_path / f"serve.{suffix}"
    code = "import os\nfor n in range(40000): os.write(1, b'%06d %s\\n' % (n, os.urandom(20).hex().encode()))"
    recorded = run(log, python(code), max_bytes=300_000, keep=3)
    files = sorted(tmp_path.glob("serve.*"))
    assert len(files) == 4
    older = [
        tmp_path / (f"serve.log.{n}.zst" if suffix == "log.zst" else f"serve.log.{n}") for n in (3, 2, 1)
    ]
    assert set(files) == {log, *older}
    numbers = []
    for file in [*older, log]:
        lines = read_lines(file)
        assert b"[RECORD] START " in lines[0]
        assert file.stat().st_size < 700_000
        numbers += [int(line.split(b" ")[3]) for line in lines if b" stdout F " in line[:50]]
    assert numbers == list(range(numbers[0], 40000))
    assert recorded.trailer.exit_code == 0


def test_sizes_are_read_with_units() -> None:
    texts = ("64000", "100k", "500M", "2GB")
    assert [parse_size(text) for text in texts] == [64_000, 100_000, 500_000_000, 2 * 10**9]
    for text in ("", "5", "-1M", "1.5G", "much"):
        with pytest.raises(UsageError):
            parse_size(text)


def test_standard_input_goes_to_the_command(tmp_path: Path) -> None:
    from tests.record.children import RECORD, ROOT

    out = subprocess.run(
        [sys.executable, "-c", RECORD, f'{{"output":"{tmp_path / "serve.log"}","quiet":true}}', "cat"],
        input=b"to the command\n",
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout
    assert out == b"to the command\n"
