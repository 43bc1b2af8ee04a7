"""Stamping: no byte is lost however the reads fall, and readers of container logs understand it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.record.stamp import PART_BYTES, Clock, Stamper, cri_time, split_streams

# As kubelet writes it (formats.md 6): nine digits, so that stamps sort as text.
CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (?:stdout|stderr) [FP] .*\n", re.DOTALL)
NOW_NS = 1_796_000_523_123_456_789


def stamped(reads: list[bytes]) -> tuple[list[bytes], bool]:
    stamper = Stamper("stderr")
    out = [stamper.feed(read, NOW_NS + n) for n, read in enumerate(reads)]
    rest, unterminated = stamper.finish(NOW_NS + len(reads))
    lines = b"".join([*out, rest]).split(b"\n")
    assert lines.pop() == b""
    return [line + b"\n" for line in lines], unterminated


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"\n", b"\r\n", b"\n\n", b"a\nb"]), max_size=30))
def test_any_bytes_in_any_reads_come_back_unchanged(reads: list[bytes]) -> None:
    lines, unterminated = stamped([read for read in reads if read])
    assert all(CRI.fullmatch(line) for line in lines)
    back = split_streams(lines).get("stderr", b"")
    assert (back.removesuffix(b"\n") if unterminated else back) == b"".join(reads)


def test_a_long_line_goes_out_in_parts_that_end_between_characters() -> None:
    text = "é".encode() * (2 * PART_BYTES)
    lines, _ = stamped([text[n : n + 4097] for n in range(0, len(text), 4097)] + [b"\n"])
    parts = [line for line in lines if b" stderr P " in line]
    assert len(parts) >= 2
    for part in parts:
        part.decode()
    assert split_streams(lines)["stderr"] == text + b"\n"


def test_a_cut_last_line_is_a_part_closed_by_an_empty_end() -> None:
    lines, unterminated = stamped([b"whole\ncut"])
    assert [line.split(b" ", 2)[2] for line in lines] == [b"F whole\n", b"P cut\n", b"F \n"]
    assert unterminated


def test_the_clock_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000, 9_000, 2_000, 9_500])
    monkeypatch.setattr("analyzer.record.stamp.time.time_ns", lambda: next(times))
    clock = Clock()
    assert [clock.now_ns() for _ in range(4)] == [5_000, 9_000, 9_000, 9_500]


def test_stamps_have_nine_digits() -> None:
    assert cri_time(1_796_000_523_000_000_007) == b"2026-11-30T01:02:03.000000007Z"
