"""CUDA graphs and Triton kernels in the op log, with stand-ins for what needs a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from analyzer.record.ops.dump import read_ring
from analyzer.record.ops.graphs import watch_graphs
from analyzer.record.ops.inputs import evidence
from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.triton import watch_triton

Names = list[tuple[str, str, bool]]


class Log:
    """A recorder over a ring, and what is in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.recorder = Recorder(Ring(str(path), 64, 1 << 16, 0))

    def ops(self) -> Names:
        return [(op.name, op.detail, op.done_ns is not None) for op in read_ring(self._path).ops]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "1.ring")


class Graph:
    """What torch.cuda.CUDAGraph looks like."""

    fails = False

    def capture_begin(self, pool: object = None) -> None:
        self.pool = pool

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        if self.fails:
            raise RuntimeError("CUDA error")


def test_a_capture_and_each_replay_are_ops(log: Log) -> None:
    pytest.importorskip("torch")
    undo = watch_graphs(log.recorder, Graph)
    graph = Graph()
    graph.capture_begin(pool=7)
    log.recorder.returned(log.recorder.launch(b"aten::mm\n;target=cuda:0"))
    graph.capture_end()
    log.recorder.returned(log.recorder.launch(b"aten::add\n;target=cuda:0"))
    graph.replay()
    Graph.fails = True
    with pytest.raises(RuntimeError):
        graph.replay()
    undo()
    found = log.ops()
    assert [(name, done) for name, _, done in found] == [
        ("cuda_graph_capture", True),
        ("aten::mm", True),
        ("aten::add", True),
        ("cuda_graph_replay", True),
        ("cuda_graph_replay", False),
    ]
    assert found[1][1] == ";target=cuda:0;capture=graph0"
    assert "capture" not in found[2][1]
    assert found[3][1].endswith(";graph=graph0")
    assert Graph.replay.__qualname__ == "Graph.replay"


class Tensor:
    """Enough of a tensor for a Triton argument."""

    shape, dtype, device = (4, 64), "torch.float32", "cuda:1"

    def data_ptr(self) -> int:
        return 4096


class Chain(list[Any]):
    """Triton's chain of hooks (3.5 and later)."""

    def add(self, function: Any) -> None:
        self.append(function)

    def __call__(self, metadata: Any) -> None:
        for one in self:
            one(metadata)


@pytest.fixture(params=["chain", "single"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for Triton's runtime knobs and launcher."""
    chained = request.param == "chain"
    runtime = SimpleNamespace(
        launch_enter_hook=Chain() if chained else None, launch_exit_hook=Chain() if chained else None
    )

    class JITFunction:
        arg_names = ("x_ptr", "pos_ptr", "n", "BLOCK")

        def run(self, *_args: Any, **kwargs: Any) -> None:
            metadata = SimpleNamespace(get=lambda: {"name": "add_position_embeddings_kernel"})
            runtime.launch_enter_hook(metadata)
            if kwargs.get("n") == -1:
                raise RuntimeError("CUDA error")
            runtime.launch_exit_hook(metadata)

    runtime.function = JITFunction()
    modules: dict[str, dict[str, Any]] = {
        "triton": {},
        "triton.runtime": {},
        "triton.knobs": {"runtime": runtime},
        "triton.runtime.jit": {"JITFunction": JITFunction},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return runtime


def test_a_triton_kernel_is_an_op_with_grid_and_arguments(log: Log, runtime: SimpleNamespace) -> None:
    undo = watch_triton(log.recorder)
    runtime.function.run(
        Tensor(), Tensor(), n=256, grid=lambda a: (a["n"] // a["BLOCK"],), warmup=False, BLOCK=64
    )
    runtime.function.run(Tensor(), grid=(3, 2), warmup=False)
    with pytest.raises(RuntimeError):
        runtime.function.run(n=-1, grid=None, warmup=False)
    undo()
    first, second, third = log.ops()
    assert first[0] == "add_position_embeddings_kernel"
    assert first[1] == ";target=cuda:1;grid=4;x_ptr=4x64xfloat32;pos_ptr=4x64xfloat32;n=256;BLOCK=64"
    assert second[1] == ";target=cuda:1;grid=3x2;x_ptr=4x64xfloat32"
    assert [first[2], second[2], third[2]] == [True, True, False]
    assert not runtime.launch_enter_hook


class Indices(Tensor):
    """An integer tensor with a storage."""

    shape, dtype = (8, 8), "torch.int64"

    def untyped_storage(self) -> Tensor:
        return self


def test_a_kernel_tells_which_op_wrote_its_integers(tmp_path: Path, runtime: SimpleNamespace) -> None:
    """It may write whatever it has a pointer to: the next reader names it."""
    path = tmp_path / "1.ring"
    recorder = Recorder(Ring(str(path), 64, 1 << 16, 1 << 16))
    watch_triton(recorder)
    for _ in range(2):
        runtime.function.run(Tensor(), Indices(), grid=(1,), warmup=False)
    first, second = read_ring(path).ops
    assert first.inputs is None
    assert second.inputs is not None
    assert evidence(second.inputs) == ";pos_ptr.from=0"


def test_a_launch_by_another_launcher_has_its_name_only(log: Log, runtime: SimpleNamespace) -> None:
    watch_triton(log.recorder)
    metadata = SimpleNamespace(get=lambda: {"name": "triton_poi_fused_add_0"})
    runtime.launch_enter_hook(metadata)
    runtime.launch_exit_hook(metadata)
    assert log.ops() == [("triton_poi_fused_add_0", ";target=cuda", True)]


def test_without_triton_nothing_happens(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton.knobs", None)
    watch_triton(log.recorder)()
    assert log.ops() == []
