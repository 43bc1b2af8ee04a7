# ruff: noqa: T201  (a command: printing is its output)
"""Seeded faults, recorded with marks and analysed: ``python -m tests.gpu.seeded.run [OUT] [KINDS] [SEEDS]``.

For a machine with a GPU that has only python, torch and what this project depends on. A table at the end: the
op and its Python line first, the instance (the step) right, wrong accusations. One program at a time: three
that failed in the same millisecond lost a GPU (observed.md 42).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analyzer.pipeline import analyze
from analyzer.schema import Result

PROGRAM = Path(__file__).with_name("program.py")
DEADLINE_S = 100
_LOST = "No CUDA GPUs are available"
SURE = frozenset({"proven", "likely", "confirmed"})
Row = dict[str, Any]


def record(kind: str, seed: int, folder: Path) -> Row:
    """Record one program; a row with its log."""
    log, truth = folder / f"{kind}.{seed}.log", folder / f"{kind}.{seed}.truth"
    command = [sys.executable, "-m", "analyzer", "record", "--for", "torch", "-o", str(log), "--quiet", "--"]
    command += [sys.executable, str(PROGRAM), str(seed), kind, str(truth)]
    try:
        code = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False).returncode
    except subprocess.TimeoutExpired:
        code = -1
    told = json.loads(truth.read_text()) if truth.exists() else {}
    return {"kind": kind, "seed": seed, "log": log, "code": code, "truth": told}


def _recorded(jobs: list[tuple[str, int]], out: Path) -> Iterator[Row]:
    """One program after another, until the GPU is gone."""
    for kind, seed in jobs:
        row = record(kind, seed, out)
        if row["log"].exists() and _LOST in row["log"].read_text(errors="replace"):
            print("the GPU is lost", flush=True)
            return
        yield row


def judge(row: Row) -> Row:
    """What the analysis says against the truth."""
    if not row["log"].exists() or not row["truth"]:
        return {**row, "verdict": "no run"}
    result: Result = analyze([str(row["log"])])
    if row["kind"] == "sound":
        wrong = any(fault.role == "root" for fault in result.faults)
        return {**row, "verdict": "FALSE FAULT" if wrong else "right"}
    return {**row, **_against(result, row["truth"])}


def _against(result: Result, truth: Row) -> Row:
    first = result.suspects[0] if result.suspects else None
    confidence = result.conclusion.confidence
    if first is None:
        return {"verdict": "nobody", "confidence": confidence, "told": result.conclusion.statement[:120]}
    lines = [frame.line for frame in first.source if frame.file.endswith("program.py")]
    op = first.op.name in truth["names"] and truth["line"] in lines
    step = first.op.step in {None, truth["step"], truth["step"] + 1}
    verdict = "right" if op and step else "op" if op else "WRONG" if confidence in SURE else "missed"
    told = f"{first.op.name} {lines} step {first.op.step}, not {truth['names']} {truth['line']}"
    return {"verdict": verdict, "confidence": confidence, "told": told}


def main() -> int:
    """Run all and print the table; 1 = something was accused wrongly."""
    from tests.gpu.seeded.kinds import KINDS

    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="seeded-"))
    kinds = sys.argv[2].split(",") if len(sys.argv) > 2 and sys.argv[2] else list(KINDS)
    seeds = [int(one) for one in sys.argv[3].split(",")] if len(sys.argv) > 3 else [1]
    out.mkdir(parents=True, exist_ok=True)
    rows = list(_recorded([(kind, seed) for seed in seeds for kind in kinds], out))
    judged = [judge(row) for row in rows]
    for row in judged:
        if row["verdict"] != "right":
            told = row.get("told", row["code"])
            print(f"{row['kind']}.{row['seed']}: {row['verdict']} {row.get('confidence')} {told}")
    print(f"{'kind':20} right of")
    for kind in kinds:
        own = [row["verdict"] for row in judged if row["kind"] == kind]
        print(f"{kind:20} {own.count('right'):5} {len(own)}")
    print("total", dict(Counter(row["verdict"] for row in judged)))
    print("confidence", dict(Counter(f"{row.get('confidence')} {row['verdict']}" for row in judged)))
    return int(any(row["verdict"] in {"WRONG", "FALSE FAULT"} for row in judged))


if __name__ == "__main__":
    sys.exit(main())
