"""Python stacks in logs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parse.source_stack import (
    MAX_FOREIGN,
    innermost_user,
    is_user_frame,
    parse_exception,
    parse_frame,
    parse_stacks,
    parse_traceback,
    read_stacks,
    traceback_before,
)
from analyzer.schema import SourceFrame

SOURCES_TEXT = """\
  File "/srv/app/max_cases.py", line 57, in <module>
    main()
  File "/opt/venv/lib/python3.12/site-packages/max/graph/value.py", line 1158, in __mul__
    return ops.mul(self, rhs)
           ~~~~~~~^^^^^^^^^^^

  File "/srv/app/max_cases.py", line 39, in build
    x = ops.softmax(x)


Note: 2 distinct Python source locations contributed ops to this fused kernel. The source traceback is above.
afterwards"""
CHAIN_TEXT = """\
Traceback (most recent call last):
  File "/opt/lib/api.py", line 1411, in set_level
    level = LogLevel[level]
            ~~~~~~~~^^^^^^^
KeyError: 'trace'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/t1.py", line 6, in <module>
    s = InferenceSession(devices=[CPU()])
  File "/opt/lib/api.py", line 727, in __init__
    self.set_level(level)
  [Previous line repeated 3 more times]
TypeError: Invalid log level (trace).
second line
INFO::: not part of it, but nothing tells
"""
GROUP_TEXT = """\
  + Exception Group Traceback (most recent call last):
  |   File "/srv/app/g.py", line 3, in <module>
  |     raise ExceptionGroup("two", [ValueError(1)])
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------"""
SOURCES, CHAIN, GROUP = (text.split("\n") for text in (SOURCES_TEXT, CHAIN_TEXT, GROUP_TEXT))


def test_stacks_are_separated_by_blank_lines() -> None:
    stacks = parse_stacks(SOURCES)
    assert [[frame.line for frame in stack] for stack in stacks] == [[57, 1158], [39]]
    assert stacks[0][1].text == "return ops.mul(self, rhs)"


def test_the_section_ends_at_the_note() -> None:
    read = read_stacks(SOURCES)
    assert (read.lines[-1], read.closed) == (10, True)


def test_the_section_ends_at_the_first_line_that_fits_nothing() -> None:
    assert len(parse_stacks([*SOURCES[:2], "something else", *SOURCES[2:]])[0]) == 1


def test_other_writers_lines_are_skipped_up_to_a_bound() -> None:
    foreign = ["[OP] LAUNCH x [id=0] "]
    assert len(read_stacks([*SOURCES[:2], *foreign * MAX_FOREIGN, *SOURCES[2:]]).stacks[0]) == 2
    assert len(read_stacks([*SOURCES[:2], *foreign * (MAX_FOREIGN + 1), *SOURCES[2:]]).stacks[0]) == 1


def test_a_section_that_the_log_cuts_is_open() -> None:
    for cut in range(10):
        assert read_stacks(SOURCES[:cut]).closed is False


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "/srv/a b.py", line 3, in f', ("/srv/a b.py", 3, "f")),
        ('  File "/srv/a.py", line 3 in f', ("/srv/a.py", 3, "f")),  # faulthandler
        ('  File "/srv/a.py", line 3', ("/srv/a.py", 3, "")),  # SyntaxError
        ('  File "<frozen runpy>", line 88, in _run_code', ("<frozen runpy>", 88, "_run_code")),
        ('  File "/srv/a.py", line 3, in <listcomp>', ("/srv/a.py", 3, "<listcomp>")),
        ('  File "/srv/a.py", line 3, in f[OP] LAUNCH x', ("/srv/a.py", 3, "f")),  # two writers
        ('  File "C:\\app\\a.py", line 3, in f', ("C:\\app\\a.py", 3, "f")),
    ],
)
def test_frame_lines(line: str, frame: tuple[str, int, str]) -> None:
    read = parse_frame(line)
    assert read is not None
    assert (read.file, read.line, read.function) == frame


@pytest.mark.parametrize("line", ['  File "/srv/a.py", line', '  File "/srv/a.py', "", "File system full"])
def test_what_is_no_frame(line: str) -> None:
    assert parse_frame(line) is None


@pytest.mark.parametrize(
    ("line", "raised"),
    [
        ("ValueError: text: more", ("ValueError", "text: more")),
        ("torch.AcceleratorError: CUDA error", ("torch.AcceleratorError", "CUDA error")),
        ("AssertionError", ("AssertionError", "")),
        ("zlib.error: bad", ("zlib.error", "bad")),
        ("KeyError: ", ("KeyError", "")),
        ("INFO: server started", None),
        ("[OP] LAUNCH x", None),
        ("loaded", None),
        ("srv/app/x.py:1:f", None),
        ("INFO::: MxNxK: 64x64x64", None),
        ("  ValueError: indented", None),
    ],
)
def test_lines_that_end_a_traceback(line: str, raised: tuple[str, str] | None) -> None:
    assert parse_exception(line) == raised


def test_the_last_traceback_of_a_chain_counts() -> None:
    read = parse_traceback(CHAIN)
    assert read is not None
    assert (read.exception, read.exception_at) == ("TypeError", 14)
    assert [frame.line for frame in read.frames] == [6, 727]
    assert [(cause.exception, cause.text) for cause in read.causes] == [("KeyError", "'trace'")]
    assert read.lines[0] == 0


def test_an_exceptions_text_may_have_several_lines() -> None:
    read = parse_traceback(CHAIN[8:16])
    assert read is not None
    assert read.text == "Invalid log level (trace).\nsecond line"
    assert read.used == 8


def test_text_ends_where_a_record_begins() -> None:
    head = CHAIN[8:15]
    for record in ("[OP] LAUNCH x", "2026-01-01 10:00:00 x", "23:37:21.189 INFO: step", "", CHAIN[8]):
        read = parse_traceback([*head, record])
        assert read is not None
        assert read.used == len(head), record


def test_a_log_line_is_not_taken_for_the_exception() -> None:
    """Between lines of a traceback another writer prints ``Name: text`` too."""
    lines = [*CHAIN[:3], "[OP] LAUNCH x", "Device: cuda", *CHAIN[3:5]]
    read = parse_traceback(lines)
    assert read is not None
    assert read.exception == "KeyError"


def test_a_traceback_that_the_log_cuts_has_no_exception() -> None:
    for cut in range(1, 4):
        read = parse_traceback(CHAIN[:cut])
        assert read is not None
        assert (read.exception, read.used) == (None, cut)


def test_what_has_no_header_is_no_traceback() -> None:
    assert parse_traceback([]) is None
    assert parse_traceback(CHAIN[1:]) is None


def test_an_exception_group_gives_its_own_frames() -> None:
    read = parse_traceback(GROUP)
    assert read is not None
    assert read.exception == "ExceptionGroup"
    assert [frame.file for frame in read.frames] == ["/srv/app/g.py"]


def test_a_header_may_stand_behind_a_progress_bar() -> None:
    assert parse_traceback([f" 31%|███▌ | 16/51{CHAIN[0]}", *CHAIN[1:]]) is not None


def test_the_traceback_before_a_line_includes_what_it_is_chained_to() -> None:
    read = traceback_before(["loaded", *CHAIN[:14]])
    assert read is not None
    assert (read.lines[0], read.lines[-1]) == (1, 14)
    assert [frame.line for frame in read.frames] == [6, 727]


def test_the_start_of_the_traceback_before_may_be_cut_off() -> None:
    read = traceback_before(CHAIN[10:14])
    assert read is not None
    assert [frame.line for frame in read.frames] == [727]


def test_a_traceback_that_ended_before_belongs_to_another_line() -> None:
    assert traceback_before([*CHAIN[8:15], "carrying on"]) is None
    assert traceback_before(["nothing", "at all"]) is None


@pytest.mark.parametrize(
    ("path", "mine"),
    [
        ("/srv/app/model.py", True),
        ("/data/lib/model.py", True),
        ("/opt/venv/lib/python3.12/site-packages/max/engine/api.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        ("/usr/lib/python3.11/enum.py", False),
        ("C:\\Python\\Lib\\site-packages\\torch\\nn.py", False),
        ("<frozen runpy>", False),
        ("/var/cache/inductor/sc/cscihz3f2jakncxh74jeajnpjvu2pnxbzm5wrfovteln4ccre4zy.py", False),
    ],
)
def test_whose_frame_it_is(path: str, mine: bool) -> None:
    assert is_user_frame(SourceFrame(file=path, line=1, function="f")) is mine


def test_innermost_frame_of_the_user() -> None:
    read = parse_traceback(CHAIN)
    assert read is not None
    frames = [*read.frames, SourceFrame(file="/usr/lib/python3.11/enum.py", line=1, function="f")]
    found = innermost_user(frames)
    assert found is not None
    assert found.line == 727
    assert innermost_user(frames[-1:]) is None


@settings(deadline=None)  # the first example builds the grammar
@given(st.lists(st.sampled_from([*SOURCES, *CHAIN, *GROUP]) | st.text(max_size=30), max_size=40))
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    """Positions stay inside and in order."""
    found = read_stacks(lines).lines
    assert list(found) == sorted(set(found))
    read = parse_traceback(lines)
    assert read is None or all(0 <= n < len(lines) for n in read.lines)
    before = traceback_before(lines)
    assert before is None or all(0 <= n < len(lines) for n in before.lines)
