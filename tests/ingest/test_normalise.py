"""Copies that Polars can scan: decoding, and joining of the parts that container runtimes make."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.ingest import normalise
from analyzer.ingest.normalise import RewriteNotes, rewrite

STAMP = "2026-03-04T05:06:07.123456789Z"


def run(data: bytes, *, join_cri: bool = False, join_docker: bool = False) -> tuple[bytes, RewriteNotes]:
    target = io.BytesIO()
    notes = rewrite(io.BytesIO(data), target, join_cri=join_cri, join_docker=join_docker)
    return target.getvalue(), notes


def cri(flag: str, text: str, stream: str = "stdout") -> str:
    return f"{STAMP} {stream} {flag} {text}\n"


def docker(text: str, stream: str = "stderr") -> str:
    return json.dumps({"log": text, "stream": stream, "time": STAMP}, separators=(",", ":")) + "\n"


def line_count(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


class DripReader(io.BytesIO):
    """Gives at most ``step`` bytes a read, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.step if size is None or size < 0 else min(size, self.step))


def test_valid_text_is_copied_byte_for_byte() -> None:
    """Nothing is changed and nothing is counted where nothing is wrong."""
    data = "Größe ✓ 😀\r\n\x00\x1b[31mred\n".encode()
    assert run(data) == (data, RewriteNotes())


def test_undecodable_bytes_become_replacement_characters_and_are_counted() -> None:
    """Bytes and characters are counted apart: a cut three-byte sequence is one character."""
    copy, notes = run(b"ok \xff\xfe tail\ncut \xe2\x96 bar\n")
    assert copy.decode() == "ok \ufffd\ufffd tail\ncut \ufffd bar\n"
    assert (notes.replaced, notes.replacements) == (4, 3)


def test_replacement_character_of_the_source_is_not_counted() -> None:
    """A U+FFFD that an earlier tool wrote is text, not damage of this file."""
    copy, notes = run("seen \ufffd\n".encode() + b"\xff\n")
    assert copy.decode() == "seen \ufffd\n\ufffd\n"
    assert (notes.replaced, notes.replacements) == (1, 1)


def test_truncated_last_character_is_replaced() -> None:
    """A log that was cut inside a character still ends in valid text."""
    copy, notes = run(b"done \xe2\x96")
    assert copy.decode() == "done \ufffd"
    assert notes.replaced == 2


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_byte_order_mark_decides_the_encoding_and_goes(encoding: str) -> None:
    """PowerShell redirections write UTF-16; the mark must not stand before the first gate."""
    text = "\ufeff[OP] LAUNCH a [id=0] \nzweite Zeile 😀\n"
    copy, notes = run(text.encode(encoding))
    assert copy.decode() == text[1:]
    assert (notes.encoding, notes.replaced) == (encoding, 0)


def test_half_a_surrogate_in_utf16_is_replaced() -> None:
    """UTF-16 can be damaged too."""
    copy, notes = run(b"\xff\xfe" + "a".encode("utf-16-le") + b"\x00\xd8" + "b\n".encode("utf-16-le"))
    assert copy.decode() == "a\ufffdb\n"
    assert (notes.replaced, notes.replacements) == (2, 1)


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_characters_cut_between_reads_are_whole(step: int) -> None:
    """A read may end inside a character, and inside the byte order mark."""
    text = "ä✓😀\n" * 5
    for data in (text.encode(), b"\xff\xfe" + text.encode("utf-16-le")):
        target = io.BytesIO()
        notes = rewrite(DripReader(data, step), target)
        assert target.getvalue().decode() == text
        assert notes.replaced == 0


def test_partial_lines_are_left_alone_unless_asked_for() -> None:
    """Joining is the caller's decision."""
    data = (cri("P", "half") + cri("F", "whole")).encode()
    assert run(data) == (data, RewriteNotes())


def test_cri_parts_stand_joined_at_the_first_line() -> None:
    """The text moves to the first part's line, the flag says whole, the other lines are empty."""
    data = cri("F", "before") + cri("P", "one ") + cri("P", "two ") + cri("F", "three") + cri("F", "after")
    copy, notes = run(data.encode(), join_cri=True)
    assert copy.decode() == cri("F", "before") + cri("F", "one two three") + "\n\n" + cri("F", "after")
    assert (notes.joined_lines, notes.unjoined_parts) == (2, 0)


def test_cri_parts_of_two_streams_interleave() -> None:
    """Each stream is joined by itself, and whole lines between the parts keep their place."""
    lines = [
        cri("P", "out1 "),
        cri("P", "err1 ", "stderr"),
        cri("F", "out2"),
        "not a container line\n",
        cri("F", "whole"),
        cri("F", "err2", "stderr"),
    ]
    copy, notes = run("".join(lines).encode(), join_cri=True)
    assert copy.decode().split("\n") == [
        cri("F", "out1 out2")[:-1],
        cri("F", "err1 err2", "stderr")[:-1],
        "",
        "not a container line",
        cri("F", "whole")[:-1],
        "",
        "",
    ]
    assert notes.joined_lines == 2


def test_cri_part_without_end_keeps_its_flag() -> None:
    """A container killed inside a line: what is there is joined, and still says partial."""
    copy, notes = run((cri("P", "a") + cri("P", "b")).encode(), join_cri=True)
    assert copy.decode() == cri("P", "ab") + "\n"
    assert (notes.joined_lines, notes.unjoined_parts) == (1, 1)


def test_last_line_without_end_stays_a_line() -> None:
    """An emptied last line needs its line end, or the file would have one line less."""
    copy, _ = run((cri("P", "a") + cri("F", "b")[:-1]).encode(), join_cri=True)
    assert copy.decode() == cri("F", "ab") + "\n"
    assert line_count(copy) == 2


def test_docker_records_without_line_end_are_joined() -> None:
    """json-file cuts at 16 KB without a flag: a record goes on until its text ends in a line end."""
    data = docker('say "x') + docker("out\n", "stdout") + docker('y"\\') + docker("z\n") + docker("next\n")
    copy, notes = run(data.encode(), join_docker=True)
    lines = copy.decode().split("\n")
    assert [json.loads(line)["log"] if line else "" for line in lines] == [
        'say "xy"\\z\n',
        "out\n",
        "",
        "",
        "next\n",
        "",
    ]
    assert notes.joined_lines == 2


def test_escaped_backslash_before_n_is_no_line_end() -> None:
    r"""``\\n`` in JSON is a backslash and an n (observed.md 33), so the record goes on."""
    data = docker("path C:\\n") + docker("ew\n")
    copy, notes = run(data.encode(), join_docker=True)
    assert json.loads(copy.decode().split("\n")[0])["log"] == "path C:\\new\n"
    assert notes.joined_lines == 1


def test_held_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is never ended must not hold the rest of a huge file in memory."""
    monkeypatch.setattr(normalise, "HELD_CHARACTERS", 200)
    data = cri("P", "open") + cri("F", "x" * 90, "stderr") * 5 + cri("F", "late")
    copy, notes = run(data.encode(), join_cri=True)
    assert copy.decode() == data
    assert (notes.joined_lines, notes.unjoined_parts) == (0, 1)


def test_overlong_line_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than the bound is copied as it is, and joining goes on behind it."""
    monkeypatch.setattr(normalise, "HELD_CHARACTERS", 100)
    monkeypatch.setattr(normalise, "CHUNK_BYTES", 16)
    data = "y" * 500 + "\n" + cri("P", "a") + cri("F", "b")
    copy, notes = run(data.encode(), join_cri=True)
    assert copy.decode() == "y" * 500 + "\n" + cri("F", "ab") + "\n"
    assert notes.joined_lines == 1


PARTS = st.one_of(
    st.builds(cri, st.sampled_from("PF"), st.text("ab ä", max_size=5), st.sampled_from(["stdout", "stderr"])),
    st.builds(docker, st.text('ab\\"\n', max_size=5), st.sampled_from(["stdout", "stderr"])),
    st.sampled_from(["\n", "plain\n", "\r\n"]),
)


@given(st.lists(st.one_of(PARTS.map(str.encode), st.binary(max_size=9))), st.booleans(), st.integers(1, 40))
def test_number_of_lines_never_changes(pieces: list[bytes], has_join: bool, step: int) -> None:
    """Reports cite line numbers of the source, so the copy has them all, and Polars can scan it."""
    data = b"-" + b"".join(pieces)  # no byte order mark
    target = io.BytesIO()
    notes = rewrite(DripReader(data, step), target, join_cri=has_join, join_docker=has_join)
    copy = target.getvalue()
    assert line_count(copy) == line_count(data)
    assert notes.joined_lines == 0 or has_join
    assert pl.scan_lines(io.BytesIO(copy), name="raw").collect().height == line_count(data)


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"])), min_size=1))
def test_joined_text_is_the_text_that_was_cut(bodies: list[str]) -> None:
    """Cutting a line into parts and joining them gives the line."""
    lines = [cri("P", body) for body in bodies[:-1]] + [cri("F", bodies[-1])]
    copy, _ = run("".join(lines).encode(), join_cri=True)
    assert copy.decode() == cri("F", "".join(bodies)) + "\n" * (len(bodies) - 1)
