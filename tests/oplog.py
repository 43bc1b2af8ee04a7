"""Op logs in the real format (observed.md 2-6), and the stages run on them without the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from analyzer.ingest.load import Loaded, load
from analyzer.ingest.source import open_sources
from analyzer.timeline.build import Timeline, build_timeline

MARK = "DEBUG::: mgp.buffer.plan stats:"
TRACE = ("srv/app/serve.py:53:<module>", "srv/app/serve.py:28:build", "graph/ops/matmul.py:79:matmul")
STEP = ("matmul", "custom__paged_lookup", "softmax")


def launch(name: str, op_id: int, *, target: str = "gpu:0") -> str:
    """A launch record in its one-line form."""
    return f"[OP] LAUNCH {name} [id={op_id}] target={target}"


def complete(name: str, op_id: int, *, target: str = "gpu:0") -> str:
    """A completion record in its one-line form."""
    return f"[OP] COMPLETE {name} [id={op_id}] target={target}"


def block(event: str, name: str, op_id: int, *stacks: Sequence[str], target: str = "gpu:0") -> list[str]:
    """A record with ``source-tracebacks``: head line, frames of each fused op, closing line."""
    frames = [frame for stack in stacks or (TRACE,) for frame in stack]
    fused = f"[fused from {len(stacks)} ops]" if len(stacks) > 1 else ""
    return [f"[OP] {event} {name} [id={op_id}] ", *frames, f"{fused};target={target}"]


def pair(name: str, op_id: int, *inner: str) -> list[str]:
    """An op with the lines that its writer prints between launch and completion."""
    return [launch(name, op_id), *inner, complete(name, op_id)]


def steps(
    count: int, names: Sequence[str] = STEP, *, first_id: int = 0, mark: str | None = MARK
) -> list[str]:
    """``count`` executions of the same graph, each behind the line that the executor prints first."""
    lines: list[str] = []
    for step in range(count):
        lines += [mark] if mark else []
        for place, name in enumerate(names):
            lines += pair(name, first_id + step * len(names) + place)
    return lines


def text(lines: Sequence[str]) -> bytes:
    """Lines as the bytes of a file."""
    return "".join(f"{line}\n" for line in lines).encode()


@contextmanager
def loaded(
    data: bytes | Sequence[str], literals: Sequence[str] = (MARK,), name: str = "serve.log"
) -> Iterator[Loaded]:
    """The first two stages on the bytes (or lines) of one file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data if isinstance(data, bytes) else text(data))
        spool = Path(folder) / "spool"
        spool.mkdir()
        with open_sources([str(path)]) as (source,):
            one = load(source, literals, spool)
            try:
                yield one
            finally:
                one.reader.close()


def mark_frame(lines: Sequence[tuple[int, str]]) -> pl.DataFrame:
    """Step marks as the timeline takes them: line and process of each."""
    rows = [{"source": 0, "process": process, "line": line} for line, process in lines]
    return pl.DataFrame(rows, schema={"source": pl.UInt16, "process": pl.String, "line": pl.UInt32})


def timeline(data: bytes | Sequence[str], *, marks: bool = False) -> Timeline:
    """The timeline of one file; ``marks``: the executor's lines are known, as the witness tells them."""
    with loaded(data) as one:
        found = one.gated.filter(pl.col("text") == MARK).select("line", "process").rows() if marks else []
        return build_timeline(one.ops, mark_frame(found))


def column(of: Timeline, name: str) -> list[object]:
    """One column of the timeline, names and details as text."""
    series = of.ops[name]
    return list(series.cast(pl.String) if series.dtype == pl.Categorical else series)
