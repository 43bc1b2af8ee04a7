"""What is too long in a line is cut; nothing else changes, wherever the pieces are cut."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.ingest.long_lines import LINE_BYTES, LineCutter, bounded_line, has_long_line
from analyzer.ingest.source import _plain_chunks
from analyzer.pipeline import analyze
from analyzer.report.terminal import render
from tests.measured import analysed

LIMIT = 10
ERROR = b"RuntimeError: CUDA error: an illegal memory access was encountered\n"


def cut(data: bytes, limit: int = LIMIT, step: int = 1 << 20) -> tuple[bytes, LineCutter]:
    out = io.BytesIO()
    cutter = LineCutter(out, limit)
    for start in range(0, len(data), step):
        cutter.write(data[start : start + step])
    cutter.close()
    return out.getvalue(), cutter


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"0123456789", b"0123456789"),
        (b"0123456789a", b"0123456789"),
        (b"one two three", b"one two"),  # half a name is another name
        (b"012345678\xc3\xa9", b"012345678"),  # half a character is none
        (b"0123456789 x\rlast words", b"0123456789\rlast words"),
        (b"0123456789 half a text", b"0123456789"),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("step", [1, 3, 100])
def test_a_line_is_cut_at_a_word_and_keeps_what_was_redrawn(
    line: bytes, kept: bytes, end: bytes, step: int
) -> None:
    assert cut(line + end, step=step)[0] == kept + end


def test_what_is_cut_is_counted() -> None:
    kept, cutter = cut(b"x" * 15 + b"\n" + b"y" * 30)
    assert kept == b"x" * 10 + b"\n" + b"y" * 10
    assert (cutter.cut_lines, cutter.cut_bytes) == (2, 25)
    assert cutter.note() == "2 lines longer than 10 bytes cut; 25 bytes were not read"


def test_nothing_is_said_where_nothing_was_cut() -> None:
    kept, cutter = cut(ERROR, limit=100)
    assert (kept, cutter.note()) == (ERROR, None)


@given(
    st.lists(st.sampled_from([b"x", b"\n", b" ", b"\r", b"abc\n", b"y" * 9, b"\xe2\x96\x88"])),
    st.integers(1, 40),
)
@example([b"y" * 9, b"x", b"\n"], 1)
def test_lines_stay_as_many_and_short_ones_as_they_are(parts: list[bytes], step: int) -> None:
    data = b"".join(parts)
    kept, cutter = cut(data, step=step)
    before, after = data.split(b"\n"), kept.split(b"\n")
    assert len(before) == len(after)
    assert len(data) - len(kept) == cutter.cut_bytes
    assert sum(len(line) > LIMIT for line in before) == cutter.cut_lines
    assert all(new == old for old, new in zip(before, after, strict=True) if len(old) <= LIMIT)


@given(st.lists(st.sampled_from([b"x", b"\n", b"y" * 9, b"z" * 30])))
def test_a_long_line_is_found_where_there_is_one(tmp_path_factory: Any, parts: list[bytes]) -> None:
    data = b"".join(parts)
    path = tmp_path_factory.mktemp("long") / "one.log"
    path.write_bytes(data)
    assert has_long_line(path, LIMIT) == any(len(line) > LIMIT for line in data.split(b"\n"))


@given(st.lists(st.sampled_from([b"x", b"\n", b"y" * 9, b"z" * 30])))
def test_a_bounded_line_ends_where_the_line_does(parts: list[bytes]) -> None:
    data = b"".join(parts)
    wanted = [
        line[:LIMIT] + line[-1:] * (len(line) > LIMIT and line.endswith(b"\n"))
        for line in data.splitlines(keepends=True)
    ]
    file = io.BytesIO(data)
    assert list(iter(lambda: bounded_line(file, LIMIT), b"")) == wanted


def test_terminal_and_json_say_what_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(ERROR + b"x" * (2 * LINE_BYTES) + b"\n" + ERROR)
    result = analyze([str(path)])
    note = f"1 line longer than {LINE_BYTES} bytes cut; {LINE_BYTES} bytes were not read"
    assert note in result.inputs[0].notes
    assert note in " ".join(render(result).split())
    assert result.accounting.total_lines == 3
    assert (result.accounting.parsed, result.accounting.ignored) == (2, 1)


def test_a_plain_file_without_a_long_line_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes((b"x" * (LINE_BYTES - 1) + b"\n") * 3 + ERROR)
    assert not has_long_line(path)


def test_a_small_piece_of_zstd_never_gives_much_at_once(tmp_path: Path) -> None:
    """A block of four bytes can hold 128 KB: what comes out is bounded by what goes in."""
    path = tmp_path / "serve.log.zst"
    path.write_bytes(_zstd(b"x" * 1_000_000 for _ in range(300)))
    assert path.stat().st_size < 20_000
    with path.open("rb") as file:
        assert max(map(len, _plain_chunks("zstd", file))) < 50_000_000


def _zstd(pieces: Iterable[bytes]) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _gzip(pieces: Iterable[bytes]) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _lzma(pieces: Iterable[bytes]) -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _bzip2(pieces: Iterable[bytes]) -> bytes:
    packer = bz2.BZ2Compressor(1)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _gigabyte() -> Iterator[bytes]:
    yield ERROR
    yield from [b"x" * 1_000_000] * 1000
    yield b"\n" + ERROR


@pytest.mark.heavy
@pytest.mark.parametrize("pack", [_zstd, _gzip, _lzma, _bzip2, None])
def test_a_line_of_a_gigabyte_stays_under_a_gigabyte_of_memory(
    tmp_path: Path, pack: Callable[[Iterable[bytes]], bytes] | None
) -> None:
    path = tmp_path / "serve.log"
    if pack is None:
        with path.open("wb") as file:
            file.writelines(_gigabyte())
    else:
        path.write_bytes(pack(_gigabyte()))
    run = analysed(path, tmp_path)
    assert run.result["accounting"]["total_lines"] == 3
    assert run.result["accounting"]["parsed"] == 2
    assert run.memory_bytes < 1_000_000_000
