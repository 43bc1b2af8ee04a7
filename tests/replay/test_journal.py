from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from analyzer.replay.hooks.journal import open_progress
from analyzer.replay.journal import JournalWriter, ends_with_stop, read_journal
from tests.replay import children

WRITES_AND_DIES = """
import os, sys
from analyzer.replay.journal import JournalWriter
journal = JournalWriter(sys.argv[1])
journal.op(0, 'aten::add', step=0, kind='op', place=['serve.py', 7, 'main', None])
journal.done(0)
journal.op(1, 'aten::index', step=0, kind='op')
os.kill(os.getpid(), 9)
"""


def test_what_was_written_before_the_launch_survives_the_death_of_the_child(tmp_path: Path) -> None:
    command = [*children.python(WRITES_AND_DIES), str(tmp_path / "journal")]
    outcome = children.run(command, tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert outcome.signal == 9
    opened = outcome.journal.open_op()
    assert opened is not None
    assert (opened.name, opened.number) == ("aten::index", 1)
    first = next(outcome.journal.of("op"))
    assert first.place is not None
    assert (first.place.file, first.place.line) == ("serve.py", 7)


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_journal_cut_anywhere_reads_as_its_whole_lines(cut: int, tmp_path_factory: object) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"  # type: ignore[attr-defined]
    writer = JournalWriter(str(path))
    for number in range(3):
        writer.op(number, "aten::mul", kind="op")
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    journal = read_journal(path)
    whole, rest = data.count(b"\n"), data.rpartition(b"\n")[2]
    assert journal.total + journal.lost == whole + bool(rest)
    assert journal.total in {whole, whole + 1}  # the cut can fall just before the line end


def test_counters_of_a_process_are_read_without_its_help(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    JournalWriter(str(path)).write("hello")
    view = open_progress(str(path))
    view[0], view[1], view[2] = 41, 40, 6
    (progress,) = read_journal(path).progress
    assert (progress.begun, progress.finished, progress.step) == (41, 40, 6)


def test_no_journal_is_an_empty_one_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none").total == 0
    path = tmp_path / "journal"
    path.write_bytes(b'not json\n\xff\xfe\n{"event": "unheard of", "pid": 1, "time_ns": 1}\n')
    assert (read_journal(path).total, read_journal(path).lost) == (0, 3)


def test_a_stop_is_seen_at_the_end_only(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert not ends_with_stop(path)
    writer = JournalWriter(str(path))
    writer.op(0, "aten::add")
    assert not ends_with_stop(path)
    writer.write("stopped", why="after step 3")
    assert ends_with_stop(path)
    assert read_journal(path).entries[-1].pid == os.getpid()
