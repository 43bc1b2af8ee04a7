"""Logs of the value printer through the whole pipeline: who is named, how sure, and who never."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache

import msgspec
import pytest

from analyzer.grammar import data_path
from analyzer.report import json as json_report
from analyzer.schema import Result
from analyzer.scoreboard import ACCUSING
from tests.aoti_log import (
    EMBEDDING,
    ERROR,
    LOG,
    MATMUL,
    SOFTMAX,
    accused,
    embedding,
    launch,
    names,
    nan_run,
    python_tensor,
    run,
    sound_run,
    tensor,
)

ASSERT = (
    "/var/cache/inductor/w3/cw3.py:34: unknown: block: [0,4,0], thread: [67,0,0] Assertion "
    "`index out of bounds: 0 <= tmp4 < 1000` failed."
)
BLOCKING_ERROR = (
    "terminate called after throwing an instance of 'c10::AcceleratorError'",
    "  what():  CUDA error: an illegal memory access was encountered",
    ERROR[1],
    ERROR[4],
    "",
)
USER = "_add_position_embeddings_kernel_0"


@cache
def sample(name: str) -> tuple[str, ...]:
    folder = data_path("sample_logs") / "aoti_printer" / name
    packed = folder / "input.log.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "input.log").read_bytes()
    return tuple(data.decode().split("\n"))


def root(result: Result) -> tuple[str, str] | None:
    return next(((fault.kind, fault.trust) for fault in result.faults if fault.role == "root"), None)


def test_sound_log_accuses_nobody() -> None:
    result = run(sound_run() * 2)
    assert (result.faults, result.suspects, result.conclusion.confidence) == ([], [], "none")
    assert result.losses == []


def test_kernel_sequence_is_in_the_result() -> None:
    result = run(sound_run() * 2)
    assert result.timeline.sequence == [EMBEDDING, MATMUL, LOG, SOFTMAX]
    assert (result.timeline.ops, result.timeline.completed, result.timeline.steps) == (8, 8, 2)
    assert result.modes.op_log_level is None
    assert result.modes.source_tracebacks is None


@pytest.mark.parametrize(
    ("name", "sequence", "ops"),
    [
        (
            "cpu_sound",
            [
                "cpp_fused_embedding_0",
                "aoti_torch_cpu_addmm_out",
                "cpp_fused_gelu_view_1",
                "cpp_fused__softmax_add_native_layer_norm_view_2",
            ],
            5,
        ),
        ("names_cpu_sound", None, 5),
    ],
)
def test_corpus_tells_its_kernels(name: str, sequence: list[str] | None, ops: int) -> None:
    result = run(sample(name))
    assert result.timeline.ops == ops
    assert sequence is None or result.timeline.sequence == sequence


def test_nan_is_a_fault_at_the_kernel_that_made_it() -> None:
    result = run([*sound_run(), "step 0", *nan_run()])
    assert root(result) == ("nan", "exact")
    assert result.conclusion.confidence == "proven"
    (suspect,) = result.suspects
    assert (suspect.op.name, suspect.op.id, suspect.op.step) == (LOG, 6, 1)
    assert suspect.op.device == "cuda:0"


def test_tensor_facts_are_json_with_nan_as_text() -> None:
    text = json_report.render(run(nan_run()))
    tensors = json.loads(text)["suspects"][0]["tensors"]
    assert tensors[0] == {
        "shape": [16, 64],
        "dtype": "float32",
        "device": "cuda:0",
        "role": "output",
        "name": "buf2",
        "stride": [64, 1],
        "elements": 1024,
        "min": "nan",
        "max": "nan",
        "mean": "nan",
        "values": None,
    }
    assert tensors[1]["role"] == "input"
    assert msgspec.json.decode(text, type=Result).suspects[0].tensors[0].min == "nan"


def test_values_of_small_index_tensors_are_in_the_result() -> None:
    result = run(sample("index_cuda"))
    given = result.suspects[0].tensors[0]
    assert (given.name, given.dtype, given.shape, given.max) == ("arg1_1", "int64", [4, 16], 5000)
    assert given.values is not None
    assert 5000 in given.values


def test_next_step_is_the_exact_command() -> None:
    commands = [step.command for step in run(nan_run()).next_steps]
    assert commands[0] == (
        f'AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT="{LOG}" '
        "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 <your command>"
    )


def test_nan_of_the_caller_names_no_kernel() -> None:
    result = run(launch(LOG, ("buf2", 0.0, 1.0, "nan", "nan"), ("arg2_1", "nan", "nan", "nan", "nan")))
    assert (accused(result), result.conclusion.confidence) == (None, "proven")
    assert result.conclusion.statement.startswith("The caller passed it in: arg2_1")
    assert result.conclusion.messenger is not None
    assert result.conclusion.messenger.name == LOG


def test_bad_index_without_a_failure_is_likely_only() -> None:
    result = run([*embedding(5000), *sound_run()])
    assert root(result) == ("input_check", "exact")
    assert (accused(result), result.conclusion.confidence) == (EMBEDDING, "likely")
    assert "input that the caller passed" in result.conclusion.statement


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB."], "out_of_memory"),
        (
            [
                "Traceback (most recent call last):",
                '  File "/srv/app/serve.py", line 62, in <module>',
                "    json.loads(text)",
                "json.decoder.JSONDecodeError: Expecting value: line 1 column 11 (char 10)",
            ],
            "unknown",
        ),
    ],
)
def test_failure_that_follows_from_no_index_stands_for_itself(error: list[str], kind: str) -> None:
    result = run([*embedding(5000), *sound_run(), *error])
    assert [fault.kind for fault in result.faults] == [kind]
    assert accused(result) is None


def test_value_that_was_printed_is_not_said_to_be_raised() -> None:
    (fault,) = run([*embedding(5000), *sound_run()]).faults
    assert fault.trust_reason == "the value printer read the value back at this launch"


def test_bad_index_before_a_device_assert_is_the_root() -> None:
    result = run([*sound_run(), *embedding(5000, done=False), ASSERT, *ERROR])
    assert root(result) == ("input_check", "exact")
    assert (accused(result), result.conclusion.confidence) == (EMBEDDING, "proven")
    assert {fault.role for fault in result.faults if fault.kind == "device_assert"} == {"cascade"}


def test_bad_index_that_did_no_harm_explains_no_later_fault() -> None:
    """Its kernel was read back sound, so the fault that came later is another launch's."""
    later = launch(SOFTMAX, ("buf3", -1.0, 1.0, 0.0, 1.0))[:13]
    result = run([*embedding(5000), *later, *ERROR])
    assert root(result) == ("illegal_address", "late")
    assert accused(result) == SOFTMAX


def test_check_tells_the_extent_where_the_table_is_not_printed() -> None:
    given = tensor(f"before_launch - {EMBEDDING} - arg1_1", 3, 5000, size=(4, 16), dtype="long int")
    result = run([*sound_run(), *given, ASSERT])
    assert (accused(result), result.conclusion.confidence) == (EMBEDDING, "proven")
    assert "outside the 1000 rows that the failed check tells" in result.conclusion.statement


def test_values_read_after_a_device_assert_are_not_believed() -> None:
    """Measured (sample index_cuda): they "succeed" with stale values, here with a NaN."""
    result = run([*embedding(5000, done=False), ASSERT, *launch(LOG, ("buf2", 0, 1, "nan", "nan"))])
    assert [fault.kind for fault in result.faults] == ["input_check", "device_assert"]
    assert accused(result) == EMBEDDING


def test_launch_whose_read_back_fails_is_named() -> None:
    cut = launch(SOFTMAX, ("buf3", -1.0, 1.0, 0.0, 1.0))[:16]
    result = run([*sound_run(), *cut, "Mean value: " + ERROR[0], *ERROR[1:]])
    assert (accused(result), result.conclusion.confidence) == (SOFTMAX, "proven")
    assert result.window is not None
    assert (result.window.first_op.id, result.window.size, result.window.proven_begin) == (4, 1, True)
    assert result.cleared.count == 4


def test_read_back_that_fails_before_a_launch_names_no_kernel_that_is_shown() -> None:
    """All that is shown was proven sound: a kernel that is not shown failed (a filter, an extern kernel)."""
    cut = launch(SOFTMAX, ("buf3", -1.0, 1.0, 0.0, 1.0))[:3]
    result = run([*sound_run(), *cut, "Mean value: Traceback (most recent call last):", *ERROR])
    assert (accused(result), result.conclusion.confidence) == (None, "undecided")


def test_launch_without_a_value_of_its_own_is_likely_only() -> None:
    scalar = "[  before_launch - k - 64L: 64  ]\\n[  after_launch - k - 64L: 64  ]"
    result = run([*sound_run(), scalar, *ERROR])
    assert (accused(result), result.conclusion.confidence) == ("k", "likely")


def test_names_alone_are_ranked_and_a_kernel_written_by_hand_is_first() -> None:
    result = run([*names(EMBEDDING, MATMUL, USER, MATMUL, SOFTMAX), *ERROR])
    assert root(result) == ("illegal_address", "late")
    assert result.conclusion.confidence not in ("proven", "confirmed")
    assert result.suspects[0].op.name == USER
    assert "CUDA_LAUNCH_BLOCKING=1" in result.next_steps[0].command
    assert "PRINTER=3" in result.next_steps[0].command


def test_last_name_without_its_second_line_is_exact_under_blocking_launches() -> None:
    result = run([*names(EMBEDDING, MATMUL), f"[ before_launch: {USER} ]", *BLOCKING_ERROR])
    assert root(result) == ("illegal_address", "exact")
    assert (accused(result), result.conclusion.confidence) == (USER, "proven")


def test_last_name_is_not_exact_if_launches_were_asynchronous() -> None:
    lines = [*names(EMBEDDING, MATMUL), f"[ before_launch: {USER} ]", BLOCKING_ERROR[0]]
    result = run([*lines, "  what():  CUDA error: an illegal memory access was encountered", *ERROR[1:]])
    assert root(result) == ("illegal_address", "late")
    assert result.conclusion.confidence not in ("proven", "confirmed")


def test_blocking_names_nobody_if_every_launch_has_returned() -> None:
    result = run([*names(EMBEDDING, MATMUL), *BLOCKING_ERROR])
    assert root(result) == ("illegal_address", "late")
    assert (accused(result), result.conclusion.confidence) == (None, "undecided")
    assert "every kernel that the value printer named had returned" in result.conclusion.statement
    assert result.cleared.count == 2


@pytest.mark.parametrize(
    "torn", ["[ aft", "[ before_launc", "[ before_launch: aoti_torch_cuda_mm_out ]", "[ "]
)
def test_names_that_break_off_under_blocking_name_nobody(torn: str) -> None:
    """Standard output was written in blocks: the names of later kernels died with the process."""
    lines = [*names(EMBEDDING, MATMUL), f"[ before_launch: {SOFTMAX} ]"]
    if "launch: " in torn:
        lines[-1] += BLOCKING_ERROR[0]
    else:
        lines.append(torn + BLOCKING_ERROR[0])
    result = run([*lines, *BLOCKING_ERROR[1:]])
    assert root(result) == ("illegal_address", "late")
    assert (accused(result), result.conclusion.confidence) == (None, "undecided")
    assert "stdbuf -oL" in result.conclusion.statement
    assert result.losses == []
    assert "stdbuf -oL" in result.next_steps[0].command


def test_names_that_fill_whole_blocks_name_nobody() -> None:
    """A block can end with a line as well."""
    lines = [*names(*["abcdefghijkl"] * 64), "[ before_launch: " + "k" * 44 + " ]"]
    assert sum(len(line) + 1 for line in lines) == 4096
    assert run([*lines, *BLOCKING_ERROR]).conclusion.confidence == "undecided"


def test_two_writers_without_tags_prove_nothing() -> None:
    lines = ["[ before_launch: a ]", *names(EMBEDDING, MATMUL), f"[ before_launch: {USER} ]", *BLOCKING_ERROR]
    assert run(lines).conclusion.confidence not in ("proven", "confirmed")
    nan = [f"[ before_launch: {SOFTMAX} ]", *nan_run()]
    assert run(nan).conclusion.confidence == "likely"


def test_python_wrapper_names_the_kernel_whose_outputs_cannot_be_read() -> None:
    head = f"after_launch - {USER} - buf8"
    lines = [
        *python_tensor(f"before_launch - {USER} - buf8"),
        f"inductor: {head}",
        "Number of elements:  4096",
        "Traceback (most recent call last):",
        '  File "/srv/app/serve.py", line 28, in <module>',
        "    out = f(ids)",
        '  File "/var/cache/inductor/cf/ccf.py", line 552, in call',
        f'    _print_debugging_tensor_value_info("inductor: {head}", buf8)',
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        *ERROR[1:],
    ]
    result = run([*launch(LOG, ("buf2", 0, 1, 2, 3), python=True), *lines])
    assert (accused(result), result.conclusion.confidence) == (USER, "proven")


def allowed(lines: Sequence[str], name: str, kinds: set[str]) -> None:
    """No crash, nobody else accused, no fault of another kind, every line counted."""
    result = run(lines)
    if result.conclusion.confidence in ACCUSING:
        assert accused(result) in (None, name)
    assert {fault.kind for fault in result.faults} <= kinds
    counts = result.accounting
    total = counts.parsed + counts.continuation + counts.ignored + counts.unrecognised
    assert total == counts.total_lines == len(lines)


def test_made_log_cut_at_every_line_invents_nothing() -> None:
    lines = nan_run()[78:]  # the matmul, the log and the softmax
    for end in range(1, len(lines)):
        allowed(lines[:end], LOG, {"nan"})


def test_log_cut_inside_a_line_invents_nothing() -> None:
    text = "\n".join([*sound_run(), *embedding(5000, done=False)])
    for end in range(len(text) - 900, len(text), 19):
        allowed(text[:end].split("\n"), EMBEDDING, {"input_check"})


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("nan_cuda", "triton_per_fused_abs_add_addmm_log_native_layer_norm_view_2"),
        ("inf_from_caller", "nobody"),
    ],
)
def test_real_log_whose_beginning_is_lost_names_no_other_kernel(name: str, last: str) -> None:
    lines = sample(name)
    begin = next(n for n in range(len(lines) - 1, 0, -1) if "aoti_model_inputs" in lines[n])
    for start in range(begin + 13, len(lines), 67):
        allowed(lines[start:], last, {"nan"})


@pytest.mark.parametrize(
    ("name", "kernel", "kinds", "tail", "stride"),
    [
        ("names_blocking", USER, {"invalid_address_space", "host_abort", "unknown"}, 109, 3),
        ("read_back_fails_python", USER, {"invalid_address_space", "unknown"}, 130, 7),
        ("read_back_fails", USER, {"invalid_address_space", "unknown"}, 160, 13),
        ("nan_cuda_python", "triton_per_fused_abs_add_addmm_log_native_layer_norm_view_2", {"nan"}, 742, 29),
        ("index_cuda_python", EMBEDDING, {"input_check", "device_assert", "unknown"}, 160, 9),
        ("index_cpu_package", "cpp_fused_embedding_0", {"input_check", "host_abort"}, 170, 11),
        ("cpu_sound", "nobody", set(), 900, 61),
    ],
)
def test_real_log_cut_anywhere_invents_nothing(
    name: str, kernel: str, kinds: set[str], tail: int, stride: int
) -> None:
    lines = sample(name)
    for end in range(max(1, len(lines) - tail), len(lines), stride):
        allowed(lines[:end], kernel, kinds)
