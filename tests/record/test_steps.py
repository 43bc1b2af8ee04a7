"""Steps of a recorded program: calls of its outermost module, carried by the ring into the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.pipeline import open_analysis
from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.steps import watch_steps
from tests.record.children import run
from tests.record.test_torch_ops import in_block, script

MARK = "[RECORD] STEP n="
STACKED = """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

stack = Stack()
with torch.no_grad():
    for _ in range(4):
        y = stack(torch.ones(2, 8))
y.index_select(0, torch.tensor([2]))
"""


class Sink:
    """Takes ops and forgets them."""

    def launch(self, ident: int, op: bytes, frames: bytes, inputs: bytes | None, step: int = 0) -> None:
        """Nothing."""

    def returned(self, ident: int) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Module:
    """A stand-in for ``torch.nn.Module``: it calls the modules that it was given."""

    def __init__(self, *inner: Module, fails: bool = False) -> None:
        self.inner, self.fails = inner, fails

    def __call__(self) -> None:
        for one in self.inner:
            one()
        if self.fails:
            raise RuntimeError("failed")


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder(Sink())
    undo = watch_steps(made, Module)
    yield made
    undo()


def test_a_step_is_a_call_of_the_outermost_module(recorder: Recorder) -> None:
    model = Module(Module(), Module(Module()))
    model()
    model()
    assert recorder.step == 2


def test_a_second_network_is_part_of_the_step(recorder: Recorder) -> None:
    model, loss = Module(), Module()
    for _ in range(3):
        model()
        loss()
    assert recorder.step == 3


def test_a_model_that_is_built_anew_each_step_still_makes_steps(recorder: Recorder) -> None:
    for _ in range(3):
        Module()()
    assert recorder.step == 3


def test_a_module_that_raises_is_left(recorder: Recorder) -> None:
    model = Module(fails=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="failed"):
            model()
    assert recorder.step == 2


def test_the_log_marks_each_step_before_its_first_op(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    _, log = in_block(tmp_path, "serve(3)")
    lines = [line for line in log.read_text().splitlines() if line.startswith((MARK, "[OP] LAUNCH "))]
    marks = [n for n, line in enumerate(lines) if line.startswith(MARK)]
    assert [lines[n] for n in marks] == [f"{MARK}{step}" for step in (1, 2, 3)]
    assert all("aten::embedding" in lines[n + 1] for n in marks)


@pytest.mark.parametrize("ring", [0, 4096])
def test_identical_layers_are_not_taken_for_steps(tmp_path: Path, ring: int) -> None:
    pytest.importorskip("torch")
    code, log = in_block(tmp_path, STACKED, ring=ring)
    assert code == 1
    with open_analysis([str(log)]) as analysis:
        ops = analysis.timeline.ops
    linear = ops.filter(ops["name"].cast(str) == "aten::addmm")
    assert linear["step"].to_list() == [step for step in range(4) for _ in range(5)]


def test_a_recording_carries_the_steps_of_each_process(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = "serve(2)\nif os.fork() == 0:\n    serve(1)\n    os._exit(0)\nos.wait()\nserve(1)\nsys.exit(3)"
    recorded = run(tmp_path / "serve.log", script(tmp_path, text), target="torch")
    own = [text for line in recorded.lines if MARK in (text := line.split(b" ", 3)[3].decode().rstrip())]
    assert [line for line in own if line.startswith(MARK)] == [f"{MARK}{step}" for step in (1, 2, 3)]
    forked = [line for line in own if line.startswith("(python pid=")]
    assert len(forked) == 1
    assert forked[0].endswith(f"{MARK}1")


def test_a_compiled_model_with_hooks_is_still_one_graph(tmp_path: Path) -> None:
    """Dynamo goes through our ``Module.__call__``: nothing in it may break the graph."""
    pytest.importorskip("torch")
    text = """
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
inner = nn.Linear(4, 4)
inner.register_forward_hook(lambda module, args, out: out * 2)
model = torch.compile(nn.Sequential(inner, nn.ReLU()), backend=counter, fullgraph=True)
for _ in range(3): model(torch.ones(2, 4))
assert counter.frame_count == 1, counter.frame_count
"""
    code, log = in_block(tmp_path, text.strip())
    assert code == 0
    assert log.read_text().count(MARK) == 3


def test_each_execution_of_a_max_model_is_marked(tmp_path: Path) -> None:
    """With a stand-in for ``max.engine.api``; the real one's log is sample ``max_ops/recorded_cpu``."""
    package = tmp_path / "app" / "max" / "engine"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "api.py").write_text(
        "class Model:\n    def execute(self, x):\n"
        "        print('executed', x, flush=True)\n        return x + 1\n"
    )
    program = tmp_path / "app" / "serve.py"
    program.write_text(
        "from max.engine.api import Model\nmodel = Model()\n"
        "assert [model.execute(n) for n in (4, 5)] == [5, 6]\n"
    )
    recorded = run(tmp_path / "serve.log", [sys.executable, str(program)], target="max")
    assert recorded.code == 0
    assert recorded.stdout == b"executed 4\nexecuted 5\n"
    assert recorded.stderr.splitlines() == [f"{MARK}{step}".encode() for step in (1, 2)]
    light = run(tmp_path / "serve.log", [sys.executable, str(program)], target="max", level="light")
    assert light.stderr == b""
