"""A line of a stranger does not hold up the analysis, from the file to the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from tests.linear.measure import growth

_ASSERT = (
    "/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: k: block: [145,0,0], thread: [0,0,0] Assertion{}x\n"
)
_NCCL = "node-3:1201:1544 [2] include/alloc.h:239 NCCL WARN {}Failed to CUDA calloc async 10485760 bytes\n"


@pytest.mark.parametrize(
    ("line", "run"), [(_ASSERT, " "), (_NCCL, "1")], ids=["assert_blanks", "nccl_digits"]
)
def test_a_run_in_a_line_takes_linear_time(tmp_path: Path, line: str, run: str) -> None:
    """Blanks in an assert and digits in a warning of NCCL once took seconds for 20 KB."""
    path = tmp_path / "one.log"

    def read(text: str) -> None:
        path.write_text(line.format(text))
        analyze([str(path)])

    assert growth(read, lambda size: run * size) is None
