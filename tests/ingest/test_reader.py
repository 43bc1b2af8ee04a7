"""Lines by number: their byte offsets, their texts, their neighbours of the same process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analyzer.ingest import reader as reading
from analyzer.ingest.lines import scan
from analyzer.ingest.reader import LineReader
from tests.oplog import MARK

contents = st.lists(
    st.one_of(
        st.just(b""),
        st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
        st.text(max_size=12).map(lambda text: text.replace("\n", "").encode("utf-8", "replace")),
    ),
    min_size=1,
    max_size=40,
)


@contextmanager
def reader(data: bytes, total_lines: int) -> Iterator[LineReader]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "serve.log"
        path.write_bytes(data)
        one = LineReader(path, 0, total_lines, len(data))
        try:
            yield one
        finally:
            one.close()


def reference(data: bytes) -> tuple[list[int], list[bytes]]:
    """Offsets and contents of the lines of a file, the plain way."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets[:-1], lines


@settings(deadline=None)
@given(contents, st.booleans(), st.randoms(use_true_random=False), st.integers(1, 9))
def test_offsets_are_real_byte_offsets_from_either_end(
    lines: list[bytes], ends: bool, random: object, chunk_bytes: int
) -> None:
    """Whatever the lines hold, in whatever order they are asked for, across every chunk border."""
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    offsets, expected = reference(data)
    wanted = list(range(1, len(expected) + 1))
    random.shuffle(wanted)  # type: ignore[attr-defined]
    with mock.patch.object(reading, "_CHUNK_BYTES", chunk_bytes), reader(data, len(expected)) as one:
        for number in wanted:
            assert one.offset(number) == offsets[number - 1]
            (text,) = one.raw(number, number)
            assert text == expected[number - 1].decode("utf-8", "replace").removesuffix("\r")
        assert one.offset(len(expected) + 1) == len(data)


@settings(deadline=None)
@given(contents, st.booleans())
def test_whole_file_is_read_as_its_lines(lines: list[bytes], ends: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    _, expected = reference(data)
    with reader(data, len(expected)) as one:
        assert one.raw(1, 99) == [line.decode("utf-8", "replace").removesuffix("\r") for line in expected]


@settings(deadline=None)
@given(contents, st.booleans())
def test_scan_counts_the_same_lines(lines: list[bytes], ends: bool) -> None:
    """The number that the scan gives a line is the number under which it is read back."""
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    _, expected = reference(data.decode("utf-8", "replace").encode())
    marked = [f"{MARK}{n}".encode() if n % 3 == 0 else line for n, line in enumerate(expected)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "serve.log"
        path.write_bytes(b"\n".join(marked) + (b"\n" if ends or b"" in marked[-1:] else b""))
        assume(path.stat().st_size)
        found = scan(path, [MARK])
    assert found.total_lines == len(marked)
    assert found.gated["line"].to_list() == [n + 1 for n in range(len(marked)) if n % 3 == 0]


def test_numbers_outside_the_file_are_clipped() -> None:
    with reader(b"a\nb\n", 2) as one:
        assert one.raw(0, 9) == ["a", "b"]
        assert one.raw(3, 9) == []
        assert one.raw(2, 1) == []


def test_what_was_written_after_the_scan_changes_nothing(tmp_path: Path) -> None:
    """Offsets near the end are counted from the end as it was scanned."""
    path = tmp_path / "serve.log"
    path.write_bytes(b"a\nb\nc\nlate\nlater\n")
    one = LineReader(path, 0, 3, 6)
    try:
        assert one.offset(3) == 4
        assert one.raw(1, 9) == ["a", "b", "c"]
    finally:
        one.close()


def test_undecodable_bytes_are_replaced_and_offsets_stay() -> None:
    data = b"ok\n\xff\xfe half \xe2\x96\nlast"
    with reader(data, 3) as one:
        assert one.raw(1, 3) == ["ok", "\ufffd\ufffd half \ufffd", "last"]
        assert one.offset(3) == data.index(b"last")


def test_neighbours_are_those_of_the_same_process() -> None:
    """Two ranks interleave line by line; a traceback must not be mixed with the other's text."""
    data = b"".join(b"[rank%d]: line %d\n" % (n % 2, n) for n in range(1, 2001))
    with reader(data, 2000) as one:
        after = [(line.number, line.text) for line in one.after(1000, "rank0", 3)]
        before = [(line.number, line.text) for line in one.before(1000, "rank1", 3)]
    assert after == [(1002, "line 1002"), (1004, "line 1004"), (1006, "line 1006")]
    assert before == [(995, "line 995"), (997, "line 997"), (999, "line 999")]


def test_search_for_neighbours_ends_after_a_bounded_distance() -> None:
    """A process that went silent a million lines ago is not searched for to the start of the file."""
    data = b"[rank0]: only\n" + b"[rank1]: other\n" * 5000
    with reader(data, 5001) as one:
        assert one.before(5000, "rank0", 10) == []
        assert [line.text for line in one.before(200, "rank0", 10)] == ["only"]
        assert one.after(1, "rank0", 10) == []


def test_line_with_carriage_returns_inside_gives_its_last_states() -> None:
    """A progress bar and what is glued to it are lines of their own with the same number."""
    with reader(b"loading  10%\rloading 100%\rRuntimeError: x\nnext\n", 2) as one:
        found = [(line.number, line.text) for line in one.lines(1, 2)]
    assert found[-2:] == [(1, "RuntimeError: x"), (2, "next")]


@pytest.mark.parametrize("block_lines", [1, 2, 3, 512])
def test_lines_are_the_same_whatever_the_block_size(
    monkeypatch: pytest.MonkeyPatch, block_lines: int
) -> None:
    monkeypatch.setattr(reading, "_BLOCK_LINES", block_lines)
    monkeypatch.setattr(reading, "_CACHED_BLOCKS", 2)
    with reader(b"".join(b"%d\n" % n for n in range(1, 11)), 10) as one:
        assert [line.text for line in one.lines(3, 8)] == list("345678")
        assert [line.text for line in one.lines(1, 10)] == [str(n) for n in range(1, 11)]
        assert [line.text for line in one.after(7, "", 9)] == ["8", "9", "10"]
        assert [line.text for line in one.before(4, "", 2)] == ["2", "3"]


def test_neighbours_of_thousands_of_writers_are_cheap() -> None:
    """Each asks for its own lines, and has one among thousands."""
    count = 9000
    data = b"".join(b"(Worker pid=%d) ERROR 11-30 09:10:00 [x.py:1] it failed\n" % n for n in range(count))
    with reader(data, count) as one:
        begin = time.process_time()
        for number in range(1, count + 1):
            process = f"Worker pid={number - 1}"
            assert [line.number for line in one.before(number + 1, process, 200)] == [number]
            assert not one.after(number, process, 200)
            assert one.offset(number) == data.index(b"(Worker pid=%d)" % (number - 1))
        assert time.process_time() - begin < 4.0
