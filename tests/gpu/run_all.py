# ruff: noqa: T201  (a command: printing is its output)
"""All GPU cases, one table at the end: ``python -m tests.gpu.run_all [OUT_FOLDER] [CASE ...]``.

For a machine that has only python, torch and what this project depends on. 1 = a case came out wrong.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.gpu.cases import (
    CASES,
    TORCH,
    Case,
    first_suspect,
    missing,
    run_case,
    run_coredump,
    run_recorded,
)
from tests.gpu.op_cases import OP_CASES, OpCase, run_op_case


def row_of(case: Case, folder: Path) -> tuple[list[str], bool]:
    """Run one case; its row of the table, and whether it is right (a skipped one is)."""
    if (why := missing(case)) is not None:
        return [case.name, "skipped", why, "", "", "", ""], True
    ran = run_op_case(case, folder) if isinstance(case, OpCase) else run_case(case, folder)
    report = ran.report
    print(f"== {case.name}: {report.statement}", flush=True)
    for text in (*ran.wrong, *report.skipped, *report.rules_out):
        print(f"   {text}", flush=True)
    for one in report.attempts:
        where = one.op.text() if one.op else ""
        print(
            f"   {one.number} {one.rung}: {one.outcome} {one.duration_s:.1f} s {where} {one.error or ''}"[
                :300
            ]
        )
    op = report.op
    row = [
        case.name,
        str(report.verdict),
        op.name if op else "-",
        str(op.step) if op and op.step is not None else "-",
        report.producer.name if report.producer else "-",
        f"{len(report.attempts)} in {ran.duration_s:.0f} s",
        "right" if not ran.wrong else "WRONG",
    ]
    return row, not ran.wrong


def main() -> int:
    """Run the cases that were asked for, or all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="replay-gpu-"))
    wanted = set(sys.argv[2:])
    rows = [["case", "verdict", "op", "step", "producer", "attempts", ""]]
    right = True
    for case in (*CASES, *OP_CASES):
        if not wanted or case.name in wanted:
            row, good = row_of(case, folder / case.name.replace(" ", "_"))
            rows.append(row)
            right &= good
    if (not wanted or "coredump" in wanted) and missing(CASES[1]) is None:
        kernel = run_coredump([TORCH, "wild_pointer"], folder / "coredump")
        good = kernel == "add_position_kernel"
        rows.append(["core-dump rung", "-", str(kernel), "-", "-", "1", "right" if good else "WRONG"])
        right &= good
    if (not wanted or "recorded" in wanted) and missing(CASES[1]) is None:
        suspect = first_suspect(run_recorded([TORCH, "messenger"], folder / "recorded"))
        good = suspect == "topk_gate_kernel"
        rows.append(
            ["recorded messenger", "-", str(suspect), "-", str(suspect), "1", "right" if good else "WRONG"]
        )
        right &= good
    print()
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
