"""The op log of PyTorch, around real programs that fail."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.parse.op_detail import parse_op_detail
from analyzer.parse.op_name import parse_op_name
from analyzer.pipeline import analyze
from analyzer.record.ops.dump import render_ring
from analyzer.record.ops.inputs import unpack_header
from analyzer.record.switches import HOOKS
from analyzer.record.torch_ops import recover
from tests.record.children import ROOT, Recorded, kill_orphan, python, run, start

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

MODEL = """
import os, sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(100, 16)
        self.out = nn.Linear(16, 16)
    def forward(self, ids):
        x = self.tokens(ids)  # embedding
        return torch.relu(self.out(x)).sum()

net = Net().eval()

def serve(steps, bad=None, end=lambda: None):
    for step in range(steps):
        ids = torch.full((2, 5), step)
        if step == bad:
            ids = torch.full((2, 5), 100)
        with torch.no_grad():
            print("step", step, net(ids).item(), flush=True)
    end()
"""


def script(folder: Path, text: str) -> list[str]:
    """A command that runs the model with ``text`` behind it."""
    path = folder / "app" / "serve.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(MODEL + text)
    return [sys.executable, str(path)]


def embedding_line() -> int:
    return next(n for n, line in enumerate(MODEL.splitlines(), 1) if "# embedding" in line)


def texts(recorded: Recorded) -> list[str]:
    return [line.split(b" ", 3)[3].decode(errors="replace").rstrip("\n") for line in recorded.payload]


def heads(lines: list[str], event: str = "LAUNCH") -> list[str]:
    """Names of the ops in order of their records."""
    return [line.split()[2] for line in lines if line.startswith(f"[OP] {event} ")]


def in_block(tmp_path: Path, text: str, **settings: object) -> tuple[int, Path]:
    """Run the model inside ``torch_ops``; gives the exit code and the path of the op log."""
    log = tmp_path / "ops.log"
    arguments = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    body = (
        f"import signal\nfrom analyzer.record import torch_ops\nwith torch_ops({str(log)!r}, {arguments}):\n"
    )
    command = script(tmp_path, body + "".join(f"    {line}\n" for line in text.splitlines()))
    done = subprocess.run(
        command, capture_output=True, timeout=120, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    return done.returncode, log


def test_the_failing_op_is_the_last_launch_before_the_traceback(tmp_path: Path) -> None:
    recorded = run(tmp_path / "serve.log", script(tmp_path, "serve(12, bad=7)"), target="torch")
    assert recorded.code == 1
    lines = texts(recorded)
    before = lines[: lines.index("Traceback (most recent call last):")]
    assert "step 6" in " ".join(before)
    last = max(n for n, line in enumerate(before) if line.startswith("[OP] LAUNCH "))
    name, ident = before[last].split()[2], before[last].split("[id=")[1].rstrip("] ")
    assert name == "aten::embedding"
    assert not any(line.startswith("[OP] COMPLETE ") and f"[id={ident}]" in line for line in lines)
    detail = parse_op_detail(before[last].split("]", 2)[2], before[last + 1 :])
    assert detail.device == "cpu"
    assert ("indices.max", "100") in detail.attributes
    assert [(one.shape, one.dtype) for one in detail.tensors] == [([100, 16], "float32"), ([2, 5], "int64")]
    frames = {(frame.file.split("/")[-1], frame.line) for frame in detail.stacks[0]}
    assert ("serve.py", embedding_line()) in frames
    assert detail.stacks[0][0].function == "<module>"


def test_every_record_is_read_by_the_parsers_of_the_analysis(tmp_path: Path) -> None:
    lines = texts(run(tmp_path / "serve.log", script(tmp_path, "serve(3, bad=2)"), target="torch"))
    names = set(heads(lines)) | set(heads(lines, "COMPLETE"))
    assert {"aten::embedding", "aten::addmm", "aten::relu", "aten::sum"} <= names
    assert [parse_op_name(name).name for name in sorted(names)] == sorted(names)
    assert heads(lines).count("aten::relu") == heads(lines, "COMPLETE").count("aten::relu") == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_killed_programs_ring_goes_into_the_log(tmp_path: Path, number: signal.Signals) -> None:
    text = f"serve(5, end=lambda: os.kill(os.getpid(), {int(number)}))"
    recorded = run(tmp_path / "serve.log", script(tmp_path, text), target="torch")
    assert recorded.code == 128 + number
    lines = texts(recorded)
    assert heads(lines).count("aten::embedding") == heads(lines, "COMPLETE").count("aten::embedding") == 5
    assert not (tmp_path / "serve.log.ops").exists()


def test_a_sound_run_leaves_no_ops_in_the_log(tmp_path: Path) -> None:
    recorded = run(tmp_path / "serve.log", script(tmp_path, "serve(3)"), target="torch")
    assert recorded.code == 0
    assert heads(texts(recorded)) == []
    assert not (tmp_path / "serve.log.ops").exists()


def test_index_inputs_are_saved_for_replay(tmp_path: Path) -> None:
    run(tmp_path / "serve.log", script(tmp_path, "serve(12, bad=7)"), target="torch")
    files = sorted((tmp_path / "serve.log.inputs").iterdir(), key=lambda path: int(path.stem.split("-")[1]))
    blob = files[-1].read_bytes()
    header = unpack_header(blob)
    assert header["__metadata__"]["op"] == "aten::embedding"
    assert header["indices"] == {"dtype": "I64", "shape": [2, 5], "data_offsets": [0, 80]}
    assert blob[-80:] == (100).to_bytes(8, "little") * 10


def test_values_are_not_read_at_the_light_level(tmp_path: Path) -> None:
    recorded = run(tmp_path / "serve.log", script(tmp_path, "serve(4, bad=3)"), target="torch", level="light")
    assert heads(texts(recorded))
    assert not (tmp_path / "serve.log.inputs").exists()
    assert "indices.max" not in " ".join(texts(recorded))


def test_ops_of_threads_and_forked_processes_are_logged(tmp_path: Path) -> None:
    text = """
import threading
serve(1)
worker = threading.Thread(target=lambda: torch.bincount(torch.tensor([1, 2])))
worker.start()
worker.join()
if os.fork() == 0:
    torch.cumsum(torch.ones(3), 0)
    os._exit(0)
os.wait()
sys.exit(3)
"""
    recorded = run(tmp_path / "serve.log", script(tmp_path, text), target="torch")
    lines = texts(recorded)
    tagged = [line for line in lines if line.startswith("(python pid=")]
    assert "aten::bincount" in heads(lines)
    forked = heads([line.split(") ", 1)[1] for line in tagged])
    assert "aten::cumsum" in forked
    assert "aten::embedding" not in forked
    assert "aten::embedding" in heads(lines)


def test_the_program_keeps_its_own_sitecustomize_and_its_own_analyzer(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "analyzer").mkdir(parents=True)
    (own / "analyzer" / "__init__.py").write_text("MINE = 'mine'\n")
    (own / "sitecustomize.py").write_text("import os\nos.environ['CUSTOMISED'] = 'yes'\n")
    text = (
        "import analyzer\nserve(1)\nprint(analyzer.MINE, os.environ['CUSTOMISED'], flush=True)\nsys.exit(2)"
    )
    command = ["env", f"PYTHONPATH={HOOKS}:{own}", *script(tmp_path, text)]
    recorded = run(tmp_path / "serve.log", command, target="torch")
    assert recorded.stdout.endswith(b"mine yes\n")
    assert "aten::embedding" in heads(texts(recorded))


def test_a_program_that_only_asks_for_torch_does_not_load_it(tmp_path: Path) -> None:
    code = "import importlib.util, sys; print(importlib.util.find_spec('torch').name, 'torch' in sys.modules)"
    assert run(tmp_path / "serve.log", python(code), target="torch").stdout == b"torch False\n"


def test_a_broken_hook_does_not_break_the_program(tmp_path: Path) -> None:
    command = ["env", "TRACE_ANALYZE_TORCH_OPS=/no/such/folder", *script(tmp_path, "serve(1)")]
    recorded = run(tmp_path / "serve.log", command, target="torch")
    assert recorded.code == 0
    assert b"no op log of PyTorch: FileNotFoundError" in recorded.stderr


def test_a_block_that_raises_leaves_its_log(tmp_path: Path) -> None:
    code, log = in_block(tmp_path, "serve(12, bad=7)")
    assert code == 1
    lines = log.read_text().splitlines()
    assert heads(lines)[-1] == "aten::embedding"
    assert any(line.startswith("app/serve.py:") or "/app/serve.py:" in line for line in lines)
    assert (tmp_path / "ops.log.inputs").is_dir()
    assert not (tmp_path / "ops.log.ring").exists()


def test_a_ring_keeps_the_last_ops_only(tmp_path: Path) -> None:
    _, log = in_block(tmp_path, "serve(50)", ring=16)
    lines = log.read_text().splitlines()
    assert len(heads(lines)) == 16
    first = next(line for line in lines if line.startswith("[OP] LAUNCH "))
    assert int(first.split("[id=")[1].split("]")[0]) > 100


def test_a_crash_leaves_the_ring_and_it_can_be_read(tmp_path: Path) -> None:
    code, log = in_block(tmp_path, "serve(3, end=lambda: os.kill(os.getpid(), signal.SIGKILL))")
    assert code == -signal.SIGKILL
    ring = tmp_path / "ops.log.ring"
    assert heads(render_ring(ring).decode().splitlines()).count("aten::embedding") == 3
    crash = Path(recover(str(log)))
    assert heads(crash.read_text().splitlines()).count("aten::embedding") == 3
    assert not ring.exists()


def test_a_full_log_is_on_disk_before_the_launch(tmp_path: Path) -> None:
    text = "serve(2)\nos.abort()"
    code, log = in_block(tmp_path, text, ring=0)
    assert code == -signal.SIGABRT
    lines = log.read_text().splitlines()
    assert heads(lines).count("aten::embedding") == heads(lines, "COMPLETE").count("aten::embedding") == 2


def test_stamps_on_demand(tmp_path: Path) -> None:
    _, log = in_block(tmp_path, "serve(2)", stamps=True)
    assert all(line.split(" ")[1:3] == ["stderr", "F"] for line in log.read_text().splitlines())


def test_what_is_written_to_is_no_evidence(tmp_path: Path) -> None:
    """An output buffer holds garbage before the launch (observed.md 29)."""
    text = "a, b = torch.zeros(3, dtype=torch.long), torch.ones(3, dtype=torch.long)\na.add_(b)"
    in_block(tmp_path, text)
    header = next(
        header
        for path in (tmp_path / "ops.log.inputs").iterdir()
        if (header := unpack_header(path.read_bytes()))["__metadata__"]["op"] == "aten::add_"
    )
    assert set(header) == {"__metadata__", "other"}


def test_large_inputs_give_their_range_only(tmp_path: Path) -> None:
    in_block(tmp_path, "torch.bincount(torch.arange(100_000))")
    headers = [unpack_header(path.read_bytes()) for path in (tmp_path / "ops.log.inputs").iterdir()]
    found = next(header for header in headers if header["__metadata__"]["op"] == "aten::bincount")
    assert set(found) == {"__metadata__"}
    assert (found["__metadata__"]["self.min"], found["__metadata__"]["self.max"]) == ("0", "99999")
    assert found["__metadata__"]["self.shape"] == "100000"


MESSENGER = """
table = torch.arange(12.0).reshape(4, 3)
positions = torch.arange(4)
sound = table.index_select(0, positions)
positions.mul_(2)  # writes 6: the table has rows 0 to 3
embedded = sound + 1
torch.nn.functional.embedding(positions, table)  # meets it
"""


def line_of(text: str) -> int:
    return next(n for n, line in enumerate((MODEL + MESSENGER).splitlines(), 1) if text in line)


def test_the_op_that_raised_is_named_with_the_op_that_wrote_its_index(tmp_path: Path) -> None:
    """The op that faults on an index is only the messenger (observed.md 25)."""
    recorded = run(tmp_path / "serve.log", script(tmp_path, MESSENGER), target="torch")
    assert recorded.code == 1
    result = analyze([str(tmp_path / "serve.log")])
    suspect = result.suspects[0]
    assert (suspect.op.name, suspect.source[0].line) == ("aten::embedding", line_of("# meets it"))
    (note,) = [note for note in result.conclusion.notes if "messenger" in note]
    (reason,) = [reason for reason in suspect.reasons if reason.evidence == "producer"]
    assert "its operand indices (0 to 6) was written by aten::mul_ (id " in note
    assert f"made at serve.py:{line_of('# writes 6')}" in note
    assert reason.text in note
    launches = [n for n, line in enumerate(recorded.lines, 1) if b"[OP] LAUNCH aten::mul_ " in line]
    assert reason.lines[0] == launches[0]


def test_code_from_the_command_line_names_its_op(tmp_path: Path) -> None:
    """No frame of a file stands in its traceback."""
    code = (
        "import torch\ntable = torch.zeros(4, 3)\nfor n in range(3):\n"
        "    table.index_select(0, torch.tensor([2 * n]))"
    )
    recorded = run(tmp_path / "serve.log", python(code), target="torch")
    assert recorded.code == 1
    (suspect,) = analyze([str(tmp_path / "serve.log")]).suspects
    assert suspect.op.name == "aten::index_select"
    assert (suspect.source[0].file, suspect.source[0].line) == ("<string>", 4)


@pytest.mark.parametrize("value", ["1", "1.0", "True"])
def test_equal_arguments_of_other_types_are_told_apart(tmp_path: Path, value: str) -> None:
    """Operands that were seen before are recognised by comparing them, and 1 == 1.0 == True."""
    code, log = in_block(tmp_path, f"x = torch.ones(3)\nx.add(1)\nx.add(1.0)\nx.add(True)\nx.add({value})")
    assert code == 0
    told = [
        line.split("other=")[1].split(";")[0] for line in log.read_text().splitlines() if "other=" in line
    ]
    assert told == ["1", "1.0", "True", value]


def test_operands_that_change_are_described_anew(tmp_path: Path) -> None:
    """Shapes, strides, dtypes and lists; more of them than are compared one by one."""
    text = """
for n in range(1, 13): torch.ones(n, 2).exp()
torch.ones(4, 2).t().exp()
torch.ones(4, 2).double().exp()
torch.ones(4, 2).exp()
torch.cat([torch.ones(1), torch.ones(2)]).exp()
"""
    _, log = in_block(tmp_path, text.strip())
    lines = log.read_text().splitlines()
    found = [line.partition("self=")[2] for n, line in enumerate(lines) if "self=" in line]
    own = [text for text in found if "x2x" in text or "2x4x" in text or text.startswith("3x")]
    assert own[:12] == [f"{n}x2xfloat32" for n in range(1, 13)]
    assert "2x4xfloat32;self.strides=1,2" in own
    assert "4x2xfloat64" in own
    assert own[-2:] == ["4x2xfloat32", "3xfloat32"]


def test_safetensors_reads_what_is_saved(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    in_block(tmp_path, "torch.bincount(torch.tensor([3, 1, 4]))")
    path = next((tmp_path / "ops.log.inputs").iterdir())
    with safetensors.safe_open(path, framework="pt") as file:
        assert file.metadata()["op"] == "aten::bincount"
        assert file.get_tensor("self").tolist() == [3, 1, 4]


def test_compiled_functions_are_still_compiled(tmp_path: Path) -> None:
    text = """
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
twice = torch.compile(lambda x: x.sin().cos(), backend=counter)
for _ in range(3): twice(torch.ones(4))
assert (counter.frame_count, counter.op_count) == (1, 2), counter.frame_count
"""
    code, log = in_block(tmp_path, text.strip())
    assert code == 0
    assert heads(log.read_text().splitlines()).count("aten::sin") == 3


def test_rings_of_a_killed_recorder_are_not_thrown_away(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    with start(log, script(tmp_path, "serve(1)\nimport time\ntime.sleep(60)"), target="torch") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
        kill_orphan(log)
        child.communicate(timeout=60)
    run(log, python("print(1)"), target="torch")
    (ring,) = (tmp_path / "serve.log.ops.old").iterdir()
    assert "aten::embedding" in heads(render_ring(ring).decode().splitlines())


def test_a_tensor_that_answers_nothing_does_not_break_the_program(tmp_path: Path) -> None:
    text = """
ragged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
(ragged * 2).to_padded_tensor(0.0)
torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 3))
torch.ones(3, dtype=torch.long, device="meta").sum()
torch.zeros(3, dtype=torch.uint32).clone()
"""
    code, log = in_block(tmp_path, text.strip())
    assert code == 0
    assert "aten::mul" in heads(log.read_text().splitlines())
