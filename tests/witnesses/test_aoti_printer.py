"""The value printer's lines, in all forms (observed.md 29-34)."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.grammar import GrammarError
from analyzer.model import KernelLog, Reading
from analyzer.witnesses.aoti_printer import WITNESS, Head, read_line
from tests.aoti_log import GLUE, MATMUL, launch, names, python_tensor, sound_run, tensor
from tests.witnesses.conftest import Reader

SAVED = "aoti_torch_save_tensor_handle: Saved tensor to "


def lines(reading: Reading, *, head: bool) -> list[int]:
    blocks = reading.blocks
    return [] if blocks is None else blocks.filter(pl.col("head") == head)["line"].to_list()


def kernels(reading_kernels: KernelLog | None) -> KernelLog:
    assert reading_kernels is not None
    return reading_kernels


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (
            "[  before_launch - triton_poi_fused_embedding_0 - arg1_1  ]:",
            Head(form="tensor", event="before", kernel="triton_poi_fused_embedding_0", arg="arg1_1"),
        ),
        (
            "[  after_launch - k - 64L: 64  ]",
            Head(form="scalar", event="after", kernel="k", arg="64L", value="64"),
        ),
        (
            "[  before_launch - k - s0*s1 - 1: -3  ]",
            Head(form="scalar", event="before", kernel="k", arg="s0*s1-1", value="-3"),
        ),
        ("[  aoti_model_inputs - arg7_1  ]:", Head(form="tensor", event="input", arg="arg7_1")),
        (
            "inductor: after_launch - extern_kernels.addmm - arg3_1",
            Head(form="python", event="after", kernel="extern_kernels.addmm", arg="arg3_1"),
        ),
        (
            "inductor: before_launch - k - reinterpret_tensor(buf3, (4, 1), (1, -1), 0)",
            Head(form="python", event="before", kernel="k", arg="reinterpret_tensor(buf3,(4,1),(1,-1),0)"),
        ),
        ("[ before_launch: k ]", Head(form="name", event="before", kernel="k")),
        (
            f"{SAVED}/srv/a b/tmp/aoti_torchafter_launch_cpp_fused_log_0_arg8_1_cuda:0.pt",
            Head(form="saved", event="after", kernel="cpp_fused_log_0", arg="arg8_1"),
        ),
        (
            "  67%|######7   | 2/3[  before_launch - k - copy_arrayref_tensor_to_tensor(buf0)  ]:",
            Head(form="tensor", event="before", kernel="k", arg="copy_arrayref_tensor_to_tensor(buf0)"),
        ),
    ],
)
def test_each_form_of_a_header_is_read(text: str, head: Head) -> None:
    assert list(read_line(text)) == [head]


def test_headers_that_a_literal_backslash_n_joins_are_cut_apart() -> None:
    text = GLUE.join(
        ["[  before_launch - k - 64L: 64  ]", "[  after_launch - k - 64L: 64  ]", "step 1 dispatched"]
    )
    assert [(head.event, head.value) for head in read_line(text)] == [("before", "64"), ("after", "64")]


@pytest.mark.parametrize(
    "text",
    [
        "[  before_launch - triton_poi_fused_embed",
        "[ before_launch: aoti_torch",
        "inductor: before_launch - triton",
        "[  before_launch - k - arg1_1  ]: and more",
    ],
)
def test_header_that_is_cut_off_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        list(read_line(text))


def test_cut_header_is_a_loss_with_its_line(read: Reader) -> None:
    reading = read(WITNESS, [*names("k"), "[ before_launch: aoti_tor"])
    assert [(loss.line, loss.text) for loss in reading.losses] == [(3, "[ before_launch: aoti_tor")]


@pytest.mark.parametrize(
    "text",
    [
        '    _print_debugging_tensor_value_info("inductor: after_launch - k - buf8", buf8)',
        '    aoti_torch_print_tensor_handle(buf0, "before_launch - k - buf0");',
        'V1130 01:00:00.0 1 graph.py:1] [__output_code]     printf("[ before_launch: k ]\\n");',
        "INFO:torch: Saved intermediate tensor buf0 for k to /srv/tmp/jit_inductor/before_launch_k_buf0.pt",
    ],
)
def test_generated_code_is_no_launch(read: Reader, text: str) -> None:
    reading = read(WITNESS, [text])
    assert (reading.kernels, reading.continuation, reading.losses) == (None, [1], [])


def test_launches_are_numbered_and_a_recurring_name_is_counted(read: Reader) -> None:
    found = kernels(read(WITNESS, names("a", MATMUL, "b", MATMUL)).kernels).launches
    assert found.select("id", "kernel", "occurrence", "level", "line", "completion_line").rows() == [
        (0, "a", 1, 3, 1, 2),
        (1, MATMUL, 1, 3, 3, 4),
        (2, "b", 1, 3, 5, 6),
        (3, MATMUL, 2, 3, 7, 8),
    ]


def test_a_kernel_launched_twice_in_a_row_is_two_launches(read: Reader) -> None:
    by_name = kernels(read(WITNESS, names("k", "k")).kernels).launches
    by_value = kernels(read(WITNESS, launch("k", ("buf0", 0, 1, 0, 1)) * 2).kernels).launches
    assert by_name["completion_line"].to_list() == [2, 4]
    assert by_value["occurrence"].to_list() == [1, 2]


def test_last_launch_without_its_second_line_has_no_completion(read: Reader) -> None:
    found = kernels(read(WITNESS, names("a", "b")[:-1]).kernels).launches
    assert found["completion_line"].to_list() == [2, None]


def test_end_of_a_launch_that_the_log_does_not_show_belongs_to_no_other(read: Reader) -> None:
    found = kernels(read(WITNESS, [*names("lost")[1:], *names("k")]).kernels).launches
    assert found.select("kernel", "completion_line").rows() == [("k", 3)]


def test_two_writers_at_once_end_the_launches_that_they_began(read: Reader) -> None:
    texts = ["[ before_launch: a ]", "[ before_launch: b ]", "[ after_launch: a ]", "[ after_launch: b ]"]
    found = kernels(read(WITNESS, texts).kernels).launches
    assert found.select("kernel", "line", "completion_line").rows() == [("a", 1, 3), ("b", 2, 4)]


def test_least_and_largest_values_are_told_for_all_tensors(read: Reader) -> None:
    prints = kernels(read(WITNESS, launch("k", ("buf0", -3, 7.5, "-nan", "inf"))).kernels).prints
    before, after = prints.select("event", "min", "max", "end").rows()
    assert before == ("before", -3.0, 7.5, 12)
    assert after[1] != after[1]
    assert after[2:] == (float("inf"), 25)


def test_mean_behind_dtype_of_the_python_wrapper_is_no_dtype_and_std_is_no_value(read: Reader) -> None:
    texts = [
        *python_tensor("before_launch - k - buf0", 1, 2),
        "inductor: before_launch - k - 64",
        "Value:  64",
    ]
    reading = read(WITNESS, texts)
    rows = kernels(reading.kernels).prints.select("arg", "min", "max", "value", "end").rows()
    assert rows == [("buf0", 1.0, 2.0, None, 8), ("64", None, None, "64", 10)]
    assert (lines(reading, head=True), lines(reading, head=False)) == ([1, 9], [2, 3, 4, 5, 6, 7, 8, 10])


def test_value_that_was_not_read_to_the_end_has_no_end(read: Reader) -> None:
    texts = [*tensor("before_launch - k - buf0")[:3], "Mean value: Traceback (most recent call last):"]
    row = kernels(read(WITNESS, texts).kernels).prints.row(0, named=True)
    assert (row["min"], row["end"]) == (None, None)


def test_saved_tensors_are_level_1(read: Reader) -> None:
    text = SAVED + "/tmp/aoti_torch/{}_launch_k_buf0_cpu.pt"
    found = kernels(read(WITNESS, [text.format("before"), text.format("after")]).kernels)
    assert found.launches.select("level", "completion_line").rows() == [(1, 2)]
    assert found.prints["end"].to_list() == [1, 2]


def test_model_inputs_begin_a_step(read: Reader) -> None:
    inputs = tensor("aoti_model_inputs - arg0_1") + tensor("aoti_model_inputs - arg1_1")
    marks = read(WITNESS, [*inputs, *names("k"), *inputs, *names("k")]).step_marks
    assert marks is not None
    assert marks["line"].to_list() == [1, 29]


def test_every_line_of_a_printed_run_is_accounted_for(read: Reader) -> None:
    texts = sound_run()
    blocks = read(WITNESS, texts).blocks
    assert blocks is not None
    assert blocks["line"].to_list() == list(range(1, len(texts) + 1))
    assert blocks.filter("head").height == texts.count("Requires grad: 0")


def test_processes_are_told_apart() -> None:
    from tests.witnesses.conftest import MemoryLog

    texts = ["[ before_launch: a ]", "[ before_launch: b ]", "[ after_launch: a ]", "[ after_launch: b ]"]
    log = MemoryLog(texts, ["rank0", "rank1", "rank0", "rank1"])
    found = kernels(WITNESS.read(log.gated(WITNESS), log).kernels).launches
    assert found.select("process", "id", "completion_line").rows() == [("rank0", 0, 3), ("rank1", 0, 4)]


def test_other_programs_values_are_not_taken(read: Reader) -> None:
    reading = read(WITNESS, [*names("k"), "Min value: 3", "Max value: 4"])
    assert (lines(reading, head=True), lines(reading, head=False)) == ([1, 2], [])
    assert kernels(reading.kernels).prints.filter(pl.col("min").is_not_null()).is_empty()
