"""Windows of which the log has types only: nothing that is made for them may go out of range."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.replay.plan import PlanOp, PlanTensor
from tests.replay.worker.jobs import op, run_here, tensor

WINDOWS, OPS = 100, 12


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


class Sizes:
    """Sizes of one op, drawn: rows of a table, indices into it, width. ``bad``: the log told a bad range."""

    def __init__(self, draw: random.Random, *, bad: bool = False) -> None:
        self.bad = bad
        self.rows, self.count, self.width = draw.randint(1, 300), draw.randint(1, 400), draw.randint(1, 40)
        self.knows_extent = draw.random() < 0.7
        self.dtype = draw.choice(["float32", "bfloat16", "float16"])
        self.integers = draw.choice(["int64", "int32"])

    def table(self, *shape: int) -> PlanTensor:
        return tensor(*(shape or (self.rows, self.width)), dtype=self.dtype)

    def index(self, *shape: int, dtype: str | None = None) -> PlanTensor:
        extent = self.rows if self.knows_extent else None
        plan = tensor(*(shape or (self.count,)), dtype=dtype or self.integers, extent=extent)
        if not self.bad:
            return plan
        told = {"fidelity": "statistics", "low": 0, "high": self.rows}
        return msgspec.structs.replace(plan, **told)


def _arguments(*tensors: PlanTensor, **scalars: Any) -> dict[str, Any]:
    return {**{f"arg{place}": one for place, one in enumerate(tensors)}, **scalars}


def _bag(sizes: Sizes) -> dict[str, Any]:
    offsets = tensor(3, dtype=sizes.integers, extent=1)
    index = sizes.index()
    return {"weight": tensor(sizes.rows, sizes.width), "indices": index, "offsets": offsets}


MAKERS: list[tuple[str, Callable[[Sizes], dict[str, Any]]]] = [
    ("aten::index_select", lambda s: {"self": s.table(), "dim": "0", "index": s.index()}),
    ("aten::embedding", lambda s: {"weight": s.table(), "indices": s.index(3, s.count)}),
    ("aten::embedding_bag", _bag),
    ("aten::index", lambda s: {"self": s.table(), "indices": (s.index(), None)}),
    ("aten::index_put", lambda s: {"self": s.table(), "indices": (s.index(),),
                                   "values": s.table(s.count, s.width)}),
    ("aten::gather", lambda s: {"self": s.table(), "dim": 0, "index": s.index(2, s.width, dtype="int64")}),
    ("aten::scatter_add", lambda s: {"self": s.table(), "dim": 0, "index": s.index(2, s.width, dtype="int64"),
                                     "src": s.table(2, s.width)}),
    ("aten::take", lambda s: {"self": s.table(s.rows), "index": s.index(dtype="int64")}),
    ("aten::topk", lambda s: {"self": s.table(), "k": str(min(s.width, 3))}),
    ("aten::nll_loss", lambda s: {"self": tensor(s.count, s.rows), "target": s.index(dtype="int64")}),
    ("mo.gather", lambda s: _arguments(s.table(), s.index(), axis=0)),
    ("mo.scatter_nd", lambda s: _arguments(s.table(), s.table(s.count, s.width), s.index(s.count, 1))),
    ("paged_lookup", lambda s: _arguments(s.table(s.rows, 4, s.width), s.index())),
    ("embedding", lambda s: _arguments(s.index(), s.table())),
    ("index_add", lambda s: _arguments(s.table(), s.index(), s.table(s.count, s.width))),
    ("argsort", lambda s: _arguments(s.table())),
]  # fmt: skip


def _window(seed: int) -> list[PlanOp]:
    draw = random.Random(seed)  # noqa: S311  (sizes, no secret)
    chosen = [draw.choice(MAKERS) for _ in range(OPS)]
    return [op(call, number, arguments=make(Sizes(draw))) for number, (call, make) in enumerate(chosen)]


def test_healthy_windows_of_types_alone_never_fail(tmp_path: Path) -> None:
    called = set()
    for seed in range(WINDOWS):
        ran = run_here(tmp_path, _window(seed), seed=seed)
        wrong = [(one.name, one.why, one.error) for one in ran.journal.of("failed", "skipped")]
        assert (ran.code, wrong) == (0, []), f"window {seed}"
        called |= {one.name for one in ran.journal.of("done")}
    assert called == {call for call, _ in MAKERS}


def test_the_same_windows_fail_once_an_index_is_known_to_be_bad(tmp_path: Path) -> None:
    """So that the test above could fail: each lookup sees the range that a log told."""
    draw = random.Random(0)  # noqa: S311
    for call, make in MAKERS:
        arguments = make(Sizes(draw, bad=True))
        if "statistics" in str(arguments):
            failed = run_here(tmp_path, [op(call, arguments=arguments)]).first("failed")
            assert failed.why is None, (call, failed.error)
