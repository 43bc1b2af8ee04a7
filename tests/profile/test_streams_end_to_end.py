"""An op log with a profile of two streams, through the command line (design.md rules 4 and 5)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from analyzer.schema import Result
from tests.profile.test_kineto import event

ROOT = Path(__file__).parents[2]
MAIN, SIDE = 7, 13
# Op log of PyTorch: a side stream gathers, the main stream computes and reads a value back.
OPS = (
    ("aten::index_select", "self=4096x64xfloat32;dim=0;index=64xint64", SIDE, "indexSelectKernel"),
    ("aten::mm", "self=64x64xfloat32;mat2=64x64xfloat32", MAIN, "gemm"),
    ("aten::_local_scalar_dense", "self=float32", MAIN, "Memcpy DtoH (Device -> Pageable)"),
    ("aten::relu", "self=64x64xfloat32", MAIN, "relu_kernel"),
)
ERROR = (
    "Traceback (most recent call last):",
    '  File "/srv/app/serve.py", line 12, in <module>',
    "    print(x.sum().item())",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "CUDA kernel errors might be asynchronously reported at some other API call.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
)


def write_log(path: Path) -> Path:
    lines = []
    for ident, (name, details, _, _) in enumerate(OPS):
        lines += [
            f"[OP] LAUNCH {name} [id={ident}] ",
            "srv/app/serve.py:7:step",
            f";target=cuda:0;{details}",
            f"[OP] COMPLETE {name} [id={ident}] target=cuda:0",
        ]
        lines += ["logits 64.0"] if name == "aten::_local_scalar_dense" else []
    path.write_text("".join(f"{line}\n" for line in [*lines, *ERROR]))
    return path


def write_profile(path: Path, streams: dict[int, int] | None = None) -> Path:
    """A Kineto trace of these ops; ``streams`` renumbers them."""
    events = []
    for nth, (name, _, stream, kernel) in enumerate(OPS):
        at = 100 * nth
        kind = "gpu_memcpy" if kernel.startswith("Memcpy") else "kernel"
        events += [
            event("cpu_op", name, at, 50),
            event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, correlation=nth),
            event(
                kind,
                kernel,
                at + 20,
                9,
                correlation=nth,
                device=0,
                stream=(streams or {}).get(stream, stream),
            ),
        ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def run(*arguments: object) -> tuple[str, str]:
    """Standard output and standard error of ``trace-analyze``."""
    command = [sys.executable, "-m", "analyzer", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, done.stderr


def analyzed(*arguments: object) -> Result:
    return msgspec.json.decode(run(*arguments, "--format", "json", "--quiet")[0], type=Result)


def window(result: Result) -> list[str]:
    assert result.window is not None
    return [op.name for op in result.window.ops]


def test_a_value_read_on_the_main_stream_does_not_clear_the_side_stream(tmp_path: Path) -> None:
    log, profile = write_log(tmp_path / "serve.log"), write_profile(tmp_path / "trace.json")
    result = analyzed(log, "--profile", profile)
    assert window(result) == ["aten::index_select", "aten::relu"]
    assert result.cleared.count == 2
    assert result.window is not None
    assert not result.window.proven_begin
    assert result.suspects[0].op.name == "aten::index_select"


@pytest.mark.parametrize("joined", [False, True])
def test_with_one_stream_or_without_a_profile_the_value_clears_all_before_it(
    tmp_path: Path, joined: bool
) -> None:
    profile = write_profile(tmp_path / "trace.json", {SIDE: MAIN})
    result = analyzed(write_log(tmp_path / "serve.log"), *(["--profile", profile] if joined else []))
    assert window(result) == ["aten::relu"]
    assert result.cleared.count == 3
    assert result.window is not None
    assert result.window.proven_begin


def test_the_reports_show_the_queues_apart(tmp_path: Path) -> None:
    log, profile = write_log(tmp_path / "serve.log"), write_profile(tmp_path / "trace.json")
    report = tmp_path / "out.perfetto.json"
    run(log, "--profile", profile, "--report", report)
    events = json.loads(report.read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == [
        "cuda:0 stream 13",
        "cuda:0 stream 7",
    ]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["aten::index_select", "aten::relu"]


def test_a_profile_of_another_run_is_told(tmp_path: Path) -> None:
    """No kernel found its op: on standard error, and in the notes of the input."""
    log = write_log(tmp_path / "serve.log")
    profile = tmp_path / "trace.json"
    other = [
        event("cpu_op", "aten::conv2d", 0, 50),
        event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
        event("kernel", "conv", 20, 9, correlation=1, device=0, stream=MAIN),
        event("kernel", "raw", 40, 9, correlation=2, device=0, stream=MAIN),
    ]
    profile.write_text(json.dumps({"traceEvents": other}))
    told = (
        "profile (kineto) does not match this log: none of its 2 kernels and copies could be joined to an op"
        " (1 of ops not in the log (or not as often), 1 outside of any op; its ops: aten::conv2d)"
    )
    out, err = run(log, "--profile", profile, "--format", "json")
    assert err == f"trace-analyze: {told}\n"
    assert json.loads(out)["inputs"][0]["notes"] == [told]
    assert json.loads(out)["timeline"]["timing_basis"] == "none"
    table, _ = run(log, "--profile", profile, "--timeline", "--width", 300)
    assert told in table


def test_the_timeline_says_how_much_of_the_profile_was_joined(tmp_path: Path) -> None:
    log, profile = write_log(tmp_path / "serve.log"), write_profile(tmp_path / "trace.json")
    table, err = run(log, "--profile", profile, "--timeline", "--width", 200)
    assert (
        "profile (kineto): 4 of 4 kernels and copies joined to 4 of 4 ops; 0 of ops not in the log" in table
    )
    assert "times are device times" in table
    assert err == ""
