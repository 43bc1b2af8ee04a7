"""Blocks whose first or last line alone names their process (formats.md 3.2, 3.12)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analyzer.ingest import owners
from analyzer.ingest.envelope import strip
from analyzer.ingest.load import Loaded, load
from analyzer.ingest.source import open_sources

SGLANG = """\
[2026-05-26 07:48:16 TP0] Decode batch. #running-req: 1
[2026-05-26 07:48:17 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/scheduler.py", line 10, in run
    self.step()
INFO:     10.0.0.9:5 - "GET /health HTTP/1.1" 200 OK
RuntimeError: CUDA error: an illegal memory access was encountered
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

Exception raised from c10_cuda_check_implementation at x.cpp:43 (most recent call first):
frame #0: c10::Error::Error() + 0x1 (0x2 in libc10.so)

CUDA error: of somebody else
[2026-05-26 07:48:18] Received sigquit from a child process. It usually means the child failed.
"""
LAUNCHER = "2026-01-08T12:00:00.123456Z ERROR shard-manager: text_generation_launcher: "
TGI = f"""\
{LAUNCHER}Shard complete standard error output:

warnings.warn(
RuntimeError: CUDA error: unspecified launch failure rank=1
2026-01-08T12:00:01.123456Z ERROR text_generation_launcher: Shard 1 crashed
"""


def load_text(tmp_path: Path, text: str) -> Loaded:
    path = tmp_path / "serve.log"
    path.write_text(text, encoding="utf-8")
    with open_sources([str(path)]) as sources:
        return load(sources[0], [" hit an exception: ", "Shard ", "CUDA error: "], tmp_path)


def writers(loaded: Loaded) -> dict[int, str]:
    return dict(loaded.gated.select("line", "process").iter_rows())


@pytest.mark.parametrize("prefix", ["", "2026-05-26T07:48:17.21748708+08:00 stderr F "])
def test_a_traceback_belongs_to_the_process_of_its_first_line(tmp_path: Path, prefix: str) -> None:
    loaded = load_text(tmp_path, "".join(prefix + line for line in SGLANG.splitlines(keepends=True)))
    assert writers(loaded) == {2: "TP1", 6: "TP1", 12: ""}
    before = loaded.reader.before(6, "TP1", 10)
    assert [line.number for line in before] == [2, 3, 4]
    assert {line.rank for line in before} == {1}
    assert [line.number for line in loaded.reader.after(6, "TP1", 10)] == [7, 9, 10]
    loaded.reader.close()


def test_lines_of_a_block_have_its_clock(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, SGLANG)
    times = loaded.gated.filter(pl.col("line").is_in([2, 6])).select("time_ns", "clock").unique()
    assert times.height == 1
    loaded.reader.close()


def test_the_output_of_a_shard_belongs_to_the_rank_at_its_end(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, TGI)
    assert writers(loaded) == {1: "rank1", 4: "rank1", 5: ""}
    loaded.reader.close()


@pytest.mark.parametrize("lines", range(1, 5))
def test_a_cut_block_is_read(tmp_path: Path, lines: int) -> None:
    """Without its last line the output of a shard is nobody's."""
    loaded = load_text(tmp_path, "".join(TGI.splitlines(keepends=True)[:lines]))
    assert set(writers(loaded).values()) == ({"rank1"} if lines == 4 else {""})
    loaded.reader.close()


def test_repeated_heads_are_cheap(tmp_path: Path) -> None:
    head = SGLANG.splitlines(keepends=True)[1]
    loaded = load_text(tmp_path, head * 20_000)
    assert loaded.gated.height == 20_000
    loaded.reader.close()


def test_a_block_ends_at_the_next_head_of_its_process_and_all_are_stripped_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash loop prints thousands of heads: one pass a head took seconds."""
    calls = 0

    def counted(frame: pl.DataFrame) -> pl.DataFrame:
        nonlocal calls
        calls += 1
        return strip(frame)

    monkeypatch.setattr(owners, "strip", counted)
    head = "[2026-05-26 07:48:1{} TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    body = '  File "/srv/scheduler.py", line 10, in run\n    self.step()\nRuntimeError: CUDA error: {}\n'
    text = "".join(head.format(at % 10) + body.format(at) for at in range(300))
    loaded = load_text(tmp_path, text)
    blocks = 4 * owners.MAX_BLOCKS
    assert calls == 1
    assert {line for line, process in writers(loaded).items() if process == "TP1" and line % 4 == 0} == set(
        range(4, blocks + 1, 4)
    )
    loaded.reader.close()
