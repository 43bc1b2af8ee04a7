"""A recording whose disk is full or whose folder is removed: it is said, and the program goes on."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analyzer.record.losses import Losses
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.watch import OpsWatch
from analyzer.record.rotate import LogFile
from tests.full_disk import needs_small_disk, on_small_disk
from tests.record.children import RECORD, ROOT, python, read_lines, start

# Writes lines until its standard input or a file tells it to stop; ends with a code of its own.
WRITER = """
import sys, time
from pathlib import Path
stop, n = Path(sys.argv[1]), 0
while not stop.exists() and n < 4000:
    print("line", n, "x" * 200, flush=True)
    n += 1
    time.sleep(0.005)
sys.exit(7)
"""


def said_until(child: subprocess.Popen[bytes], text: bytes, within_s: float = 20.0) -> bytes:
    """What a recorder says on standard error until ``text`` is in it: the command still runs then."""
    assert child.stderr is not None
    os.set_blocking(child.stderr.fileno(), False)
    said, end = b"", time.monotonic() + within_s
    while text not in said and time.monotonic() < end:
        said += child.stderr.read() or b""
        time.sleep(0.02)
    os.set_blocking(child.stderr.fileno(), True)
    return said


def drained(child: subprocess.Popen[bytes]) -> None:
    """Read standard output in the background of the test, so that nobody waits."""
    import threading

    assert child.stdout is not None
    threading.Thread(target=child.stdout.read, daemon=True).start()


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_log_that_is_removed_is_said_at_once_and_at_the_end(tmp_path: Path, what: str) -> None:
    folder, stop = tmp_path / "logs", tmp_path / "stop"
    folder.mkdir()
    log = folder / "serve.log"
    command = [sys.executable, "-c", WRITER, str(stop)]
    with start(log, command) as child:
        drained(child)
        while not log.exists() or b"line 20 " not in log.read_bytes():
            time.sleep(0.02)
        if what == "folder":
            shutil.rmtree(folder)
        else:
            log.unlink()
        said = said_until(child, b"was removed while it was written; the command goes on")
        assert b"was removed while it was written; the command goes on" in said
        assert child.poll() is None, "the command goes on"
        time.sleep(1.5)
        stop.touch()
        assert child.stderr is not None
        said = child.stderr.read()
        assert child.wait(timeout=20) == 7, "its exit code is ours"
    last = said.splitlines()[-1]
    assert b"bytes of the log could not be written: " in last
    assert b"was removed while it was written" in last
    if what == "file":  # it is begun anew, with its switches at the top
        lines = read_lines(log)
        assert b"[RECORD] START" in lines[0]
        assert any(b" line " in line for line in lines)
        assert any(b"[RECORD] EXIT code=7" in line for line in lines)
    else:
        assert not folder.exists()
        assert b"cannot be made anew" in last


def test_a_folder_that_comes_back_gets_the_log_again(tmp_path: Path) -> None:
    folder, stop = tmp_path / "logs", tmp_path / "stop"
    folder.mkdir()
    log = folder / "serve.log"
    with start(log, [sys.executable, "-c", WRITER, str(stop)]) as child:
        drained(child)
        while not log.exists():
            time.sleep(0.02)
        shutil.rmtree(folder)
        said_until(child, b"cannot be made anew")
        folder.mkdir()
        end = time.monotonic() + 20
        while not log.exists() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        stop.touch()
        assert child.wait(timeout=20) == 7
    assert any(b" line " in line for line in read_lines(log))


def test_a_log_that_is_moved_is_written_on_where_it_is(tmp_path: Path) -> None:
    log, stop, moved = tmp_path / "serve.log", tmp_path / "stop", tmp_path / "moved.log"
    with start(log, [sys.executable, "-c", WRITER, str(stop)]) as child:
        drained(child)
        while not log.exists() or b"line 5 " not in log.read_bytes():
            time.sleep(0.02)
        log.rename(moved)
        time.sleep(1.5)
        stop.touch()
        assert child.stderr is not None
        assert child.stderr.read() == b""
        assert child.wait(timeout=20) == 7
    assert b"[RECORD] END" in moved.read_bytes()
    assert b"lost_bytes=0" in moved.read_bytes()


@pytest.mark.parametrize("suffix", ["log", "log.zst"])
def test_a_disk_that_gets_full_is_said_at_once_and_at_the_end(tmp_path: Path, suffix: str) -> None:
    """A real file system of 300 KB; later there is room again."""
    needs_small_disk()
    disk, stop = tmp_path / "disk", tmp_path / "stop"
    disk.mkdir()
    code = (
        "import random, sys, time\n"
        "from pathlib import Path\n"
        "for n in range(40): print(random.randbytes(10000).hex(), flush=True)\n"
        "print('full by now', flush=True)\n"
        "while not Path(sys.argv[1]).exists(): time.sleep(0.02)\n"
        "Path(sys.argv[2]).unlink(); print('room again', flush=True); time.sleep(0.3); sys.exit(7)"
    )
    ballast = disk / "ballast"
    script = f'head -c 100000 /dev/zero > {ballast}; exec "$@"'
    asked = f'{{"output": "{disk}/serve.{suffix}", "quiet": true}}'
    inner = [sys.executable, "-c", code, str(stop), str(ballast)]
    record = ["sh", "-c", script, "sh", sys.executable, "-c", RECORD, asked, *inner]
    # The log is read before its file system is gone.
    kept = tmp_path / f"kept.{suffix}"
    keep = ["sh", "-c", f'"$@"; code=$?; cp {disk}/serve.{suffix} {kept}; exit $code', "sh", *record]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(on_small_disk(disk, "300k", keep), env=environment, **pipes) as child:  # type: ignore[call-overload]
        drained(child)
        said = said_until(child, b"the command goes on")
        assert b"cannot be written: No space left on device; the command goes on" in said
        assert child.poll() is None
        stop.touch()
        last = child.stderr.read().splitlines()[-1]
        assert child.wait(timeout=20) == 7
    assert b"bytes of the log could not be written: " in last
    assert b"No space left on device" in last
    if suffix == "log":
        lines = read_lines(kept)
        assert any(b"room again" in line for line in lines)
        assert any(b"[RECORD] EXIT code=7" in line for line in lines)


def test_writes_that_fail_are_counted_and_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    log = LogFile(
        tmp_path / "a.log", max_bytes=None, keep=1, header=lambda _: b"head\n", losses=Losses(told.append)
    )
    real, full = os.write, [True]

    def write(fd: int, data: bytes) -> int:
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    for _ in range(3):
        log.write(b"0123456789\n")
    full[0] = False
    log.write(b"again\n")
    monkeypatch.undo()
    log.close()
    assert log.lost_bytes >= 33
    assert len(told) == 1
    assert "No space left on device; the command goes on" in told[0]
    assert (tmp_path / "a.log").read_bytes() == b"head\n\nagain\n"


def test_a_rotation_that_fails_goes_on_in_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    losses = Losses(told.append)
    log = LogFile(tmp_path / "a.log", max_bytes=100, keep=1, header=lambda _: b"head\n", losses=losses)

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(LogFile, "_open", refuse)
    for number in range(50):
        log.write(b"line %d\n" % number)
    monkeypatch.undo()
    log.close()
    whole = b"".join(one.read_bytes() for one in sorted(tmp_path.iterdir(), reverse=True))
    assert whole == b"head\n" + b"".join(b"line %d\n" % number for number in range(50))
    assert "Permission denied" in told[0]
    assert losses.lost_bytes == 0


def test_inputs_that_cannot_be_saved_do_not_end_the_recording(tmp_path: Path) -> None:
    """The folder of the log is gone: the ops go into the log all the same, without the values."""
    told: list[str] = []
    rings = tmp_path / "rings"
    rings.mkdir()
    header = b'{"__metadata__":{}}'
    ring = Ring(str(rings / "7.ring"), 16, 1 << 12, 1 << 12)
    ring.launch(0, b"aten::add\n;target=cpu", b"", struct.pack("<Q", len(header)) + header)
    (tmp_path / "blocked").write_text("")
    watch = OpsWatch(rings, tmp_path / "blocked" / "inputs", Losses(told.append))
    assert b"aten::add" in watch.lines()
    assert "inputs of ops cannot be saved" in told[0]


def test_a_ring_without_room_is_refused_and_not_a_death(tmp_path: Path) -> None:
    """A store into a page that the disk has no room for is SIGBUS."""
    needs_small_disk()
    code = (
        "import sys\n"
        "from analyzer.record.ops.ring import Ring\n"
        "from pathlib import Path\n"
        "try: Ring(sys.argv[1] + '/1.ring', 4096, 8 << 20, 16 << 20)\n"
        "except OSError as error: print(error.strerror, list(Path(sys.argv[1]).iterdir()))"
    )
    command = on_small_disk(tmp_path, "1m", [*python(code), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "No space left on device []\n"), done.stderr
