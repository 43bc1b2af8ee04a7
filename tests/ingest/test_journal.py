"""Journals, as ``journalctl -o export`` and ``-o json`` write them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from analyzer.ingest.journal import is_export, is_json, rewrite_export, rewrite_json
from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests.prefixes import PREFIXES

CRASH = """\
INFO:     Started server process [1]
Traceback (most recent call last):
  File "/srv/app/serve.py", line 41, in step
    out = model(x).cpu()
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might \
be incorrect.
terminate called after throwing an instance of 'c10::AcceleratorError'
"""
TRACED = """\
Traceback (most recent call last):
  File "/srv/app/load.py", line 7, in <module>
    \x1b[31mraise\x1b[0m ValueError(name)
ValueError: no weights named dec\u00f6der
"""


def entry(message: bytes, *, binary: bool = False, pid: int = 4711) -> bytes:
    """An entry with its message as text or as binary."""
    said = b"MESSAGE\n" + struct.pack("<Q", len(message)) + message if binary else b"MESSAGE=" + message
    head = (
        b"__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1796083200000000\n_BOOT_ID=7f\nSYSLOG_IDENTIFIER=python3\n"
    )
    return head + said + f"\n_PID={pid}\n\n".encode()


def copied(data: bytes) -> list[bytes]:
    out = io.BytesIO()
    rewrite_export(io.BytesIO(data), out)
    return out.getvalue().split(b"\n")


def written(folder: Path, data: bytes) -> Result:
    path = folder / "journal.export"
    path.write_bytes(data)
    return analyze([str(path)])


def told(result: Result) -> list[tuple[str, str, str]]:
    """Roles, kinds and texts of all faults."""
    return [(one.role, one.kind, one.text) for one in result.faults]


def exported(text: str) -> bytes:
    lines = PREFIXES["journal export"](text.removesuffix("\n").split("\n"))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("text", [CRASH, TRACED], ids=["crash", "with control characters"])
def test_an_export_gives_the_verdict_of_the_plain_log(tmp_path: Path, text: str) -> None:
    plain, export = written(tmp_path, text.encode()), written(tmp_path, exported(text))
    assert plain.faults
    assert told(export) == told(plain)
    assert export.conclusion.confidence == plain.conclusion.confidence
    assert export.conclusion.statement == plain.conclusion.statement


@pytest.mark.parametrize("text", [CRASH, TRACED], ids=["crash", "with control characters"])
def test_each_line_of_an_export_is_counted(tmp_path: Path, text: str) -> None:
    data = exported(text)
    found = written(tmp_path, data).accounting
    assert found.total_lines == data.count(b"\n")
    assert found.parsed + found.continuation + found.ignored + found.unrecognised == found.total_lines


def test_a_fault_stands_at_its_line_of_the_export(tmp_path: Path) -> None:
    """Whoever opens the file finds the message there."""
    data = exported(CRASH)
    fault = written(tmp_path, data).faults[0]
    assert b"CUDA error: an illegal memory access" in data.split(b"\n")[fault.line - 1]


@pytest.mark.parametrize(
    "data",
    [
        entry(b"plain"),
        entry(b"one\ntwo\n\nfour", binary=True),
        entry(b"\x1b[31mred\x1b[0m", binary=True) + entry(b"after"),
        entry(b"", binary=True),
        entry(b"ends in one\n", binary=True),
        entry(b"x" * 10, binary=True) + entry(b"", binary=False),
        entry(b"x" * 266, binary=True) + entry(b"y" * 10, binary=True),
        entry(b"no end at all").rstrip(b"\n"),
        entry(b"cut inside a message", binary=True)[:130],
        entry(b"cut inside the size", binary=True)[:103],
        entry(b"a") + b"MESSAGE\n" + struct.pack("<Q", 1 << 60) + b"what\n\n" + entry(b"b"),
        entry(b"a") + b"\n\n\n" + entry(b"b"),
        entry(b"a") + b"no field\n" + entry(b"b"),
    ],
)
def test_a_copy_has_the_lines_of_the_export(data: bytes) -> None:
    """So that line numbers stay, whatever the entries hold."""
    assert len(copied(data)) == len(data.split(b"\n"))
    assert (copied(data)[-1] == b"") == data.endswith(b"\n")


def test_a_message_that_the_end_of_the_export_cuts_is_cut(tmp_path: Path) -> None:
    """As in the plain log: half a message proves nothing."""
    data = exported("Traceback (most recent call last):\nRuntimeError: Failed to compile the model.\n")
    found = written(tmp_path, data[: data.index(b"compile") + 4])
    assert found.conclusion.confidence == "undecided"
    assert "ends in the middle of line" in found.conclusion.statement


def test_half_a_pid_is_no_pid() -> None:
    data = entry(b"said")
    shown = copied(data[: data.index(b"4711") + 2])
    assert [line.split()[2] for line in shown if line.endswith(b"said")] == [b"python3[0]:"]


def test_a_message_of_several_lines_stands_at_its_lines() -> None:
    data = entry(b"one\ntwo", binary=True)
    shown = copied(data)
    said = [number for number, line in enumerate(shown) if line.endswith((b": one", b": two"))]
    assert said == [data.split(b"\n").index(b"two") - 1, data.split(b"\n").index(b"two")]
    assert shown[said[0]].startswith(b"2026-12-01T00:00:00.000000+00:00 - python3[4711]: ")


def test_messages_that_are_lists_of_bytes_become_text() -> None:
    out = io.BytesIO()
    line = b'{"__REALTIME_TIMESTAMP":"1","MESSAGE":[27,91,51,49,109,111,104],"_PID":"7"}\n'
    rewrite_json(io.BytesIO(line), out)
    assert out.getvalue() == line.replace(b"[27,91,51,49,109,111,104]", rb'"\u001b[31moh"')


def test_a_journal_is_told_by_its_first_fields() -> None:
    assert is_export(entry(b"x"))
    assert is_json(b'{"__CURSOR":"s","__REALTIME_TIMESTAMP":"1"}\n')
    assert not is_export(b"__CURSOR is a word\nin a log\n")
    assert not is_json(b'{"log":"__REALTIME_TIMESTAMP"}\n')
