"""Every line is counted once, as the first of: op head, parsed, body of a record, unrecognised, ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from tests.oplog import MARK, block, complete, launch, text

ERROR = (
    "RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
)
LOSS = "[OP] LAUNCH matmul [id="
BODY = block("LAUNCH", "mul", 0)


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        ([launch("mul", 0), complete("mul", 0), "text", ""], (2, 0, 2, 0)),
        (BODY, (1, 4, 0, 0)),
        ([*BODY[:2], ERROR, *BODY[2:]], (2, 4, 0, 0)),
        ([*BODY[:2], MARK, "text", *BODY[2:]], (2, 5, 0, 0)),
        ([*BODY, LOSS], (1, 4, 0, 1)),
        ([launch("mul", 0) + ERROR], (1, 0, 0, 0)),
        ([launch("mul", 0) + LOSS], (1, 0, 0, 0)),
        (BODY[:-1], (1, 0, 3, 0)),
        ([f"[rank{n}]: {line}" for line in BODY for n in (0, 1)], (2, 8, 0, 0)),
        ([f"[rank{n}]: {line}" for line in [*BODY, ERROR] for n in (0, 1)], (4, 8, 0, 0)),
    ],
    ids=[
        "plain", "body", "error inside a body", "text inside a body", "cut record", "error glued to a record",
        "cut record glued to a record", "body without end", "two bodies woven", "two bodies and errors",
    ],
)  # fmt: skip
def test_line_is_counted_once(lines: list[str], counts: tuple[int, int, int, int], tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(text(lines))
    found = analyze([str(path)]).accounting
    assert (found.parsed, found.continuation, found.ignored, found.unrecognised) == counts
    assert found.total_lines == len(lines)


def test_counts_of_several_inputs_are_added(tmp_path: Path) -> None:
    paths = []
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_bytes(text([*BODY, "text"]))
        paths.append(str(tmp_path / name))
    found = analyze(paths).accounting
    assert (found.total_lines, found.parsed, found.continuation, found.ignored) == (12, 2, 8, 2)
