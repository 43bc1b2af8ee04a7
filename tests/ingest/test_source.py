"""Where bytes come from: files, pipes and archives, whatever they are called."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
import zstandard

from analyzer.errors import InputError
from analyzer.ingest import source as sources
from analyzer.ingest.source import open_sources
from tests.oplog import steps, text

LOG = text(steps(40))
ZSTD = zstandard.ZstdCompressor()
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": ZSTD.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
every_packer = pytest.mark.parametrize("kind", PACKERS)


def read(path: Path) -> bytes:
    """The plain bytes that the next stage scans."""
    with open_sources([str(path)]) as (one,):
        return one.path.read_bytes()


def refused(path: Path) -> str:
    with pytest.raises(InputError) as error, open_sources([str(path)]):
        pass
    return str(error.value)


@every_packer
@pytest.mark.parametrize("name", ["serve.log", "serve.log.1", "serve.gz", "serve.zst"])
def test_compression_is_told_by_magic_bytes_not_by_the_name(tmp_path: Path, kind: str, name: str) -> None:
    """Rotated files have any ending (formats.md 7.9)."""
    path = tmp_path / name
    path.write_bytes(PACKERS[kind](LOG))
    with open_sources([str(path)]) as (one,):
        assert (one.compression, one.path.read_bytes(), one.notes) == (kind, LOG, ())
        assert (one.size_bytes, one.plain_bytes) == (path.stat().st_size, len(LOG))


def test_plain_file_may_be_called_gz(tmp_path: Path) -> None:
    """A log that logrotate renamed and never packed."""
    path = tmp_path / "serve.log.gz"
    path.write_bytes(LOG)
    with open_sources([str(path)]) as (one,):
        assert one.compression is None
        assert one.path == path, "a plain file is not copied"


@every_packer
def test_archive_of_several_members_is_read_to_the_end(tmp_path: Path, kind: str) -> None:
    """``cat a.gz b.gz > c.gz`` and appending loggers make such files."""
    path = tmp_path / "serve.log"
    path.write_bytes(PACKERS[kind](LOG) + PACKERS[kind](b"the end\n"))
    assert read(path) == LOG + b"the end\n"


@pytest.mark.parametrize("kind", ["gzip", "zstd", "xz"])
@pytest.mark.parametrize("part", [0.5, 0.99])
def test_cut_archive_gives_what_it_holds_and_says_so(tmp_path: Path, kind: str, part: float) -> None:
    """The server died while it wrote: what stands before the cut is evidence."""
    noise = b"".join(b"%d %s\n" % (n, os.urandom(20).hex().encode()) for n in range(20_000))
    packed = PACKERS[kind](noise)
    path = tmp_path / "serve.log"
    path.write_bytes(packed[: int(len(packed) * part)])
    with open_sources([str(path)]) as (one,):
        kept = one.path.read_bytes()
        (note,) = one.notes
    assert noise.startswith(kept)
    assert len(kept) > 0.8 * part * len(noise)
    assert f"the {kind} stream ends early or is broken" in note


def test_small_cut_archive_gives_what_it_holds(tmp_path: Path) -> None:
    """Less than one read of plain text is no reason to drop it."""
    path = tmp_path / "serve.log.gz"
    path.write_bytes(gzip.compress(LOG)[:-8])
    assert read(path) == LOG


def test_flushed_zstd_stream_of_a_killed_writer_is_read_up_to_the_flush(tmp_path: Path) -> None:
    """``trace-analyze record`` flushes blocks; a kill leaves the frame open."""
    writer = ZSTD.compressobj()
    path = tmp_path / "serve.log.zst"
    path.write_bytes(writer.compress(LOG) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    with open_sources([str(path)]) as (one,):
        assert one.path.read_bytes() == LOG
        assert "the end of the last frame is missing" in one.notes[0]


def test_broken_bytes_inside_an_archive_keep_what_stands_before(tmp_path: Path) -> None:
    noise = os.urandom(200_000).hex().encode()
    packed = bytearray(gzip.compress(noise))
    packed[len(packed) // 2 : len(packed) // 2 + 400] = b"\xff" * 400
    path = tmp_path / "serve.log"
    path.write_bytes(packed)
    with open_sources([str(path)]) as (one,):
        assert noise.startswith(one.path.read_bytes()[:10_000])
        assert "gzip stream ends early or is broken" in one.notes[0]


@every_packer
def test_archive_without_any_text_is_refused(tmp_path: Path, kind: str) -> None:
    """Magic bytes and nothing behind them."""
    path = tmp_path / "serve.log"
    path.write_bytes(PACKERS[kind](LOG)[:12])
    assert refused(path).startswith(f"{path}: cannot be read as {kind}: ")


@every_packer
def test_archive_of_an_empty_file_is_an_empty_log(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(PACKERS[kind](b""))
    assert "is empty" in refused(path)


def test_archive_of_a_binary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "core.zst"
    path.write_bytes(ZSTD.compress(os.urandom(50_000)))
    assert "is a binary file, not a log" in refused(path)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty; was the log written to another file, or the stream not redirected?"),
        (b"\x7fELF" + bytes(range(32)) * 100, "is a binary file, not a log; a GPU core dump is read with"),
        (b"\x00" * 4096, "is a binary file"),
        (b"PK\x03\x04" + os.urandom(30_000), "is a binary file"),
        (b"\x80\x02}q\x00(X\x05\x00\x00\x00stepsq\x01K\x08u." * 50, "is a binary file"),
    ],
)
def test_input_that_is_no_text_is_refused_with_what_to_do(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(data)
    assert told in refused(path)


@pytest.mark.parametrize(
    "data",
    [
        b"one\x00two\n" * 50,
        b"\x1b[36m(worker)\x1b[0m progress\r 30%\r 60%\n" * 50,
        "Größe █████ 50% 日本語\n".encode() * 50,
        "Größe\n".encode("latin-1") * 50,
        "内存访问错误 日志\n".encode("gbk") * 50,
        "\ufeffGröße".encode("utf-16-le"),
        "\ufeffGröße".encode("utf-16-be"),
    ],
)
def test_odd_text_is_text(tmp_path: Path, data: bytes) -> None:
    """NUL bytes, colours, bars, foreign encodings: logs hold all of them (formats.md 7)."""
    path = tmp_path / "serve.log"
    path.write_bytes(data)
    assert read(path) == data


def test_missing_file_and_directory_are_told_apart(tmp_path: Path) -> None:
    assert refused(tmp_path / "no.log").endswith("no.log: no such file")
    assert refused(tmp_path).endswith("is a directory; give the log files in it")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file_says_permission_denied(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(LOG)
    path.chmod(0)
    assert refused(path).endswith("permission denied")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (PermissionError(errno.EACCES, "x"), "permission denied"),
        (OSError(errno.EIO, "I/O error"), "I/O error"),
    ],
)
def test_failing_open_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: OSError, told: str
) -> None:
    """Also where the tests run as root, and for what a disk can do."""
    path = tmp_path / "serve.log"
    path.write_bytes(LOG)

    def fail(*_: object, **__: object) -> IO[bytes]:
        raise raised

    monkeypatch.setattr(Path, "open", fail)
    assert told in refused(path)


def test_full_disk_is_no_broken_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a log because there is no room for it must not pass for the whole."""
    path = tmp_path / "serve.log"
    path.write_bytes(gzip.compress(LOG))

    class Full(io.BytesIO):
        name = "/tmp/spool/0.log"

        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    plain = sources._write
    monkeypatch.setattr(sources, "_write", lambda _out, chunk, name: plain(Full(), chunk, name))
    assert "no room for a plain copy" in refused(path)


def test_named_pipe_is_read_once_to_its_end(tmp_path: Path) -> None:
    """``trace-analyze <(kubectl logs pod)``: it cannot be opened twice nor be sought in."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(LOG),))
    writer.start()
    with open_sources([str(path)]) as (one,):
        assert one.path.read_bytes() == LOG
        assert (one.compression, one.size_bytes) == ("gzip", None)
    writer.join()


@pytest.mark.parametrize("kind", ["plain", *PACKERS])
def test_standard_input_is_a_source_of_unknown_size(kind: str) -> None:
    """A real pipe into a real child."""
    code = (
        "from analyzer.ingest.source import open_sources\n"
        "with open_sources(['-']) as (one,):\n"
        "    print(one.name, one.size_bytes, one.compression, one.plain_bytes)"
    )
    data = PACKERS[kind](LOG) if kind in PACKERS else LOG
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    told = kind if kind in PACKERS else None
    assert done.stdout.decode().split() == ["<stdin>", "None", str(told), str(len(LOG))]


def test_copies_are_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(gzip.compress(LOG))
    with open_sources([str(path)]) as (one,):
        copy = one.path
        assert copy.exists()
    assert not copy.exists()
