"""Whatever the bytes are: an analysis whose counts add up, or a clear refusal."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analyzer.errors import InputError
from analyzer.pipeline import analyze
from analyzer.report import json as json_report
from analyzer.report import terminal
from analyzer.schema import Result
from tests.oplog import MARK, block, complete, launch

# What real logs are made of, so that random texts come deep into the readers.
FRAGMENTS = [
    "[OP] ", "[OP] LAUNCH ", "[OP] COMPLETE ", "[id=", "0] ", "1]", "302] target=gpu:0", ";target=gpu:0",
    "[fused from 4 ops];target=gpu:0", "srv/app/a.py:30:build", "Prologue(", "Epilogue(matmul, silu",
    ", operandIndices=[0])", "custom__paged_lookup", "INFO::: MxNxK: 64x64x64", MARK,
    'ValueError: An error occurred in kernel entry point named "__a_async":',
    'An error occurred in kernel named "__custom__paged_lookup":',
    "CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)",
    "To get more accurate error information, set MODULAR_DEBUG=device-sync-mode.", "Fusion info:",
    "  \u251c\u2500\u2500 mo.mul : (!mo.tensor<[64, 64], f32, gpu:0>) -> !mo.tensor<[64, 64], f32, gpu:0>",
    "Source Traceback:", '  File "/srv/app/a.py", line 57, in <module>', "Traceback (most recent call last):",
    "coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)",
    "coredump:   #0\t0x7feecf7cfe70\tmojo_pkg_5af0_a989", "NaN/Inf detected in ' %6' (",
    "NanCheckPass: checked 1 of 5 float kernel outputs (stride=20, graph @g)",
    "[rank0]: ", "(EngineCore_DP0 pid=7) ", "\x1b[36m", "\x1b[0m", "\r", "\r\n", "\n", "\n", "\n", "\x00",
    "2026-11-30T01:02:03.123456789Z stdout P ", "2026-11-30T01:02:03.123456789Z stderr F ",
    '{"log":"', '\\n","stream":"stdout","time":"2026-11-30T01:02:03Z"}', "30/30 [00:27<00:00, 1.09it/s]",
    "step 8 logits 64.0000", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "cuda-gdb", "NVRM: Xid (PCI:0000:01:00): 31, pid=7", "========= Invalid __global__ read of size 4 bytes",
    *block("LAUNCH", "mul", 0), launch("mul", 1), complete("mul", 1),
]  # fmt: skip
FILES = [
    b"",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"BZh9",
    b"\xfd7zXZ\x00",
]

fragment = st.one_of(
    st.sampled_from(FRAGMENTS).map(lambda text: text.encode()),
    st.sampled_from(FRAGMENTS).map(lambda text: f"{text}\n".encode()),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "replace")),
    st.binary(max_size=4),
)
contents = st.tuples(st.sampled_from(FILES), st.lists(fragment, max_size=40)).map(
    lambda parts: parts[0] + b"".join(parts[1])
)


def analysed(path: str) -> Result | InputError:
    try:
        return analyze([path])
    except InputError as error:
        return error


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(contents)
@example(b"\n")
@example(b"[OP] LAUNCH mul [id=18446744073709551616] target=gpu:0\n")
@example(b"[OP] LAUNCH mul [id=7")
@example(b"2026-11-30T01:02:03.123456789Z stdout P \x80")
@example(b'{"log":"[OP] LAUNCH mul [id=7] ","stream":"stdout"')
def test_any_bytes_give_an_analysis_whose_counts_add_up_or_a_clear_refusal(data: bytes) -> None:
    """No traceback, no line counted twice, every report of it can be written."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "serve.log"
        path.write_bytes(data)
        result = analysed(str(path))
    if isinstance(result, InputError):
        assert str(result).startswith(f"{path}: ")
        return
    counts = result.accounting
    parts = (counts.parsed, counts.continuation, counts.ignored, counts.unrecognised)
    assert min(parts) >= 0
    assert sum(parts) == counts.total_lines == result.inputs[0].lines
    assert sum(fault.role == "root" for fault in result.faults) == (1 if result.faults else 0)
    assert result.conclusion.suspect is None or result.suspects
    assert json.loads(json_report.render(result))["accounting"]["total_lines"] == counts.total_lines
    assert terminal.render(result, width=100, color=False, top=3)
