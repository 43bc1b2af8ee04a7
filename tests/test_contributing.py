"""The examples of CONTRIBUTING.md do what they say: they are executed as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"<!-- (file|row): (\S+)(?: (\w+))? -->\n```\w+\n(.*?)```", re.DOTALL)
LOG = "sample_logs/brightserve/exhausted/input.log"


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with all files and rows of the examples."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("analyzer", "grammars"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(blocks) == 6
    for form, path, table, text in blocks:
        target = folder / path
        if form == "file":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        else:
            target.write_text(with_row(target.read_text(encoding="utf-8"), table, text), encoding="utf-8")
    return folder


def with_row(module: str, table: str, row: str) -> str:
    """The module with a row in front of the others of a table."""
    head = re.search(rf"^{table}\b.*= \($", module, re.MULTILINE)
    assert head is not None
    return module[: head.end()] + "\n" + textwrap.indent(row, "    ") + module[head.end() :]


def python(folder: Path, *arguments: str) -> str:
    """What a child prints that imports the copy."""
    told = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout, told.stderr
    return told.stdout


def analysis(folder: Path, log: str = LOG) -> dict[str, Any]:
    """The result of the copy as JSON."""
    script = (
        "import sys, msgspec; from analyzer.pipeline import analyze;"
        "sys.stdout.buffer.write(msgspec.json.encode(analyze(sys.argv[1:])))"
    )
    found: dict[str, Any] = json.loads(python(folder, "-c", script, log))
    return found


def test_a_new_witness_reads_its_sample(extended: Path) -> None:
    found = analysis(extended)
    assert found["inputs"][0]["witnesses"] == ["brightserve"]
    assert next((one["kind"], one["role"]) for one in found["faults"]) == ("out_of_memory", "root")
    assert found["accounting"]["unrecognised"] == 0


def test_its_row_of_advice_is_used_and_no_vendor_is_made_up(extended: Path) -> None:
    steps = analysis(extended)["next_steps"]
    assert steps[0]["command"] == "<your command> --batch-limit <fewer>"
    assert not re.search("nvidia|cuda|torch|MODULAR|amd", json.dumps(steps), re.IGNORECASE)


def test_without_a_row_a_new_program_gets_no_tool_of_a_vendor(extended: Path) -> None:
    log = extended / "aborted.log"
    log.write_text("loading model\nbrightserve: abort: scheduler: queue is gone\n", encoding="utf-8")
    steps = analysis(extended, str(log))["next_steps"]
    assert steps
    assert not re.search("nvidia|cuda|torch|MODULAR|amd", json.dumps(steps), re.IGNORECASE)


def test_a_new_code_is_known_by_its_name(extended: Path) -> None:
    script = "from analyzer.tables.codes import by_name; print(by_name('cudaErrorQueueFull').code)"
    assert python(extended, "-c", script).strip() == "979"


def test_a_new_prefix_comes_off_the_line(extended: Path) -> None:
    log = extended / "prefixed.log"
    body = (extended / LOG).read_text(encoding="utf-8").splitlines()
    log.write_text("".join(f"bright<77> {line}\n" for line in body), encoding="utf-8")
    found = analysis(extended, str(log))
    assert found["inputs"][0]["envelopes"] == ["brightlog"]
    assert found["faults"][0]["kind"] == "out_of_memory"
