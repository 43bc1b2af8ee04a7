"""Printed values name the kernel that made a NaN, and never one whose output buffer only held garbage."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from analyzer.values.bad_values import find_bad_value
from analyzer.values.flaws import Flaw, is_buffer
from analyzer.values.prints import Prints
from analyzer.witnesses.aoti_printer import WITNESS
from tests.aoti_log import (
    EMBEDDING,
    LOG,
    MATMUL,
    SOFTMAX,
    Given,
    embedding,
    launch,
    nan_run,
    sound_run,
    tensor,
)
from tests.witnesses.conftest import MemoryLog

SOUND: tuple[float, float] = (-1.0, 1.0)
NAN = ("nan", "nan")
INFINITE = (-1.0, "inf")
INPUT = tensor("aoti_model_inputs - arg1_1")
REPLACE = "triton_poi_fused_nan_to_num_1"


def prints_of(lines: Sequence[str]) -> Prints:
    log = MemoryLog(lines)
    kernels = WITNESS.read(log.gated(WITNESS), log).kernels
    assert kernels is not None
    steps = pl.lit(None, dtype=pl.Int32).alias("step")
    return Prints(kernels.prints, kernels.launches.with_columns(steps))


def bad_value(lines: Sequence[str]) -> Flaw | None:
    return find_bad_value(prints_of(lines))


def kernel(lines: Sequence[str], number: int | None) -> str:
    launches = prints_of(lines).launches
    return str(launches.filter(pl.col("id") == number)["kernel"][0])


def arg(name: str, before: tuple[float | str, float | str], after: tuple[float | str, float | str]) -> Given:
    return (name, *before, *after)


def test_sound_run_with_garbage_in_its_outputs_accuses_nobody() -> None:
    assert bad_value(sound_run()) is None


def test_first_kernel_that_left_a_nan_is_named() -> None:
    flaw = bad_value(nan_run())
    assert flaw is not None
    assert (kernel(nan_run(), flaw.launch), flaw.arg, flaw.sure) == (LOG, "buf2", True)
    assert flaw.origin.who == "kernel"
    assert flaw.origin.launch == flaw.launch


def test_nan_of_the_caller_is_the_callers() -> None:
    lines = [*launch(LOG, arg("buf2", SOUND, NAN), arg("arg2_1", NAN, NAN))]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.origin.who, flaw.origin.arg) == ("caller", "arg2_1")


def test_nan_that_only_the_caller_ever_held_is_no_fault() -> None:
    """A paged cache is handed over uninitialised; what nobody read does no harm."""
    assert bad_value(launch("k", arg("buf0", SOUND, SOUND), arg("arg8_1", NAN, NAN))) is None


def test_nan_where_garbage_held_one_counts_if_it_spread() -> None:
    lines = [
        *INPUT,
        *launch(MATMUL, arg("buf1", NAN, NAN)),
        *launch(SOFTMAX, arg("buf1", NAN, NAN), arg("buf2", SOUND, NAN)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert flaw.origin.launch == 0
    assert kernel(lines, flaw.origin.launch) == MATMUL
    assert not flaw.sure


def test_nan_where_garbage_held_one_and_that_nobody_read_is_garbage() -> None:
    lines = [*launch(MATMUL, arg("buf1", NAN, NAN)), *launch(SOFTMAX, arg("buf2", SOUND, SOUND))]
    assert bad_value(lines) is None


def test_output_of_the_last_kernel_counts_though_garbage_held_a_nan() -> None:
    flaw = bad_value([*launch(SOFTMAX, arg("buf2", SOUND, SOUND)), *launch(MATMUL, arg("buf1", NAN, NAN))])
    assert flaw is not None
    assert (flaw.launch, flaw.sure) == (1, False)


def test_nan_that_was_never_used_is_not_sure() -> None:
    lines = [
        *launch(LOG, arg("buf2", SOUND, NAN), arg("arg1_1", SOUND, SOUND)),
        *launch(SOFTMAX, arg("buf3", SOUND, SOUND)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert not flaw.sure
    assert "masked on purpose" in flaw.notes[-1]


def test_extern_kernel_shows_no_inputs_so_it_is_not_sure() -> None:
    flaw = bad_value([*INPUT, *launch(MATMUL, arg("buf1", SOUND, NAN))])
    assert flaw is not None
    assert (flaw.origin.who, flaw.sure) == ("kernel", False)
    assert "only the output" in flaw.notes[0]


def test_nan_from_a_kernel_that_the_python_wrapper_does_not_show_names_nobody() -> None:
    """Python wrapper: extern kernels are not printed, so buf3 was given a NaN by one of them."""
    first = launch("k", arg("buf4", SOUND, (0.0, 1.0)), arg("buf3", SOUND, SOUND), python=True)
    second = launch("k", arg("buf4", SOUND, NAN), arg("buf3", NAN, NAN), python=True)
    flaw = bad_value([*first, *second])
    assert flaw is not None
    assert (flaw.origin.who, flaw.origin.arg) == ("not_shown", "buf3")


def test_inf_that_becomes_nan_is_traced_to_who_made_it() -> None:
    lines = [
        *launch(LOG, arg("buf1", SOUND, (-1.0, "inf")), arg("arg1_1", SOUND, SOUND)),
        *launch(SOFTMAX, arg("buf1", (-1.0, "inf"), (-1.0, "inf")), arg("buf2", SOUND, NAN)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.origin.launch, flaw.launch, flaw.came_as) == (0, 1, "inf")


def test_inf_of_the_caller_is_traced_through_a_reused_buffer() -> None:
    lines = [
        *launch(LOG, arg("buf1", SOUND, (-1.0, "inf")), arg("arg1_1", (0.5, "inf"), (0.5, "inf"))),
        *launch(SOFTMAX, arg("buf2", (-1.0, "inf"), NAN)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.origin.who, flaw.origin.arg) == ("caller", "arg1_1")


def test_minus_inf_is_a_mask_and_the_kernel_that_makes_nan_of_it_is_named() -> None:
    mask = ("-inf", 0.0)
    lines = [
        *launch("triton_poi_fused_masked_fill_0", arg("buf1", SOUND, mask)),
        *launch(SOFTMAX, arg("buf1", mask, mask), arg("buf2", SOUND, NAN)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.origin.launch, flaw.came_as) == (1, None)
    assert "as a mask does" in flaw.notes[0]


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("triton_poi_fused_masked_fill_0", ("-inf", 0.0)),
        ("triton_poi_fused_masked_fill_0", (0.0, "inf")),
        ("triton_poi_fused_add_0", ("-inf", 0.0)),
    ],
)
def test_inf_of_a_mask_is_no_fault(name: str, after: tuple[float | str, float | str]) -> None:
    assert bad_value(launch(name, arg("buf1", SOUND, after), arg("arg1_1", SOUND, SOUND))) is None


@pytest.mark.parametrize("end", [SOUND, INFINITE])
def test_inf_that_becomes_no_nan_is_no_fault(end: tuple[float | str, float | str]) -> None:
    """``1 / (1 + exp(-x))`` overflows on the way to 0; what is returned beside it can be Inf as well."""
    lines = [
        *launch("triton_poi_fused_exp_0", arg("buf1", SOUND, INFINITE), arg("arg1_1", SOUND, SOUND)),
        *launch(
            "triton_poi_fused_add_reciprocal_1", arg("buf1", INFINITE, INFINITE), arg("buf2", SOUND, end)
        ),
    ]
    assert bad_value([*INPUT, *lines]) is None


@pytest.mark.parametrize("in_place", [True, False])
def test_nan_that_a_later_kernel_replaced_is_no_fault(in_place: bool) -> None:
    lines = [*INPUT, *launch(LOG, arg("buf1", SOUND, NAN), arg("arg1_1", NAN, NAN))]
    if in_place:
        lines += launch(REPLACE, arg("buf2", NAN, SOUND))
    else:
        lines += launch(REPLACE, arg("buf1", NAN, NAN), arg("buf2", (0.0, 1e30), SOUND))
    assert bad_value(lines) is None
    assert bad_value([*lines, *launch(MATMUL, arg("buf3", NAN, SOUND))]) is None


def test_nan_made_after_one_that_was_replaced_is_not_the_callers() -> None:
    lines = [
        *INPUT,
        *launch("triton_poi_fused_mul_0", arg("buf1", SOUND, NAN), arg("arg1_1", NAN, NAN)),
        *launch(REPLACE, arg("buf2", NAN, SOUND)),
        *launch(LOG, arg("buf3", SOUND, NAN), arg("buf2", SOUND, SOUND)),
        *launch(SOFTMAX, arg("buf3", NAN, NAN), arg("buf4", SOUND, NAN)),
    ]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (kernel(lines, flaw.origin.launch), flaw.arg) == (LOG, "buf3")


def test_nan_of_a_later_execution_counts_after_one_that_was_replaced() -> None:
    replaced = [*INPUT, *launch(LOG, arg("buf1", SOUND, NAN)), *launch(REPLACE, arg("buf2", NAN, SOUND))]
    log = MemoryLog([*replaced, *replaced, *nan_run()])
    kernels = WITNESS.read(log.gated(WITNESS), log).kernels
    assert kernels is not None
    steps = pl.Series("step", [0, 0, 1, 1, 2, 2, 2, 2], dtype=pl.Int32)
    flaw = find_bad_value(Prints(kernels.prints, kernels.launches.with_columns(steps)))
    assert flaw is not None
    assert (flaw.launch, flaw.sure) == (6, True)


def test_nan_that_the_last_kernel_was_only_given_is_not_sure() -> None:
    """What an extern kernel made of it is not printed; here it is known to read its argument."""
    sound = [*launch(LOG, arg("buf1", SOUND, (0.0, 2.0))), *launch("cumsum", arg("buf1", SOUND, SOUND))]
    lines = [*INPUT, *sound, *launch(LOG, arg("buf1", SOUND, NAN)), *launch("cumsum", arg("buf1", NAN, NAN))]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.launch, flaw.sure) == (2, False)
    assert "what it made of it is not printed" in flaw.notes[-1]


def test_no_kernel_is_named_for_a_nan_where_the_log_begins_in_its_launch() -> None:
    whole = launch(SOFTMAX, arg("buf1", NAN, NAN), arg("buf2", SOUND, NAN))
    flaw = bad_value(whole[13:])  # what was printed of buf1 before the launch is cut off
    assert flaw is not None
    assert (flaw.origin.who, flaw.origin.arg, flaw.cut) == ("not_shown", "buf1", True)


def test_no_extern_kernel_is_named_where_the_log_begins_in_the_execution() -> None:
    above = tensor(f"after_launch - {LOG} - buf1", *NAN)
    for lines in (
        [*above, *launch(MATMUL, arg("buf2", SOUND, NAN))],
        launch(MATMUL, arg("buf2", SOUND, NAN)),
    ):
        flaw = bad_value(lines)
        assert flaw is not None
        assert (flaw.origin.who, flaw.cut) == ("not_shown", True)


def test_log_that_begins_in_an_execution_names_nobody_for_a_nan_that_was_there() -> None:
    lines = [*tensor(f"after_launch - {MATMUL} - buf1"), *launch(SOFTMAX, arg("buf3", NAN, NAN))]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (flaw.origin.who, flaw.cut) == ("not_shown", True)


def test_inf_from_above_the_beginning_of_the_log_names_nobody() -> None:
    flaw = bad_value(
        launch("triton_poi_fused_gelu_1", arg("buf1", INFINITE, NAN), arg("arg1_1", SOUND, SOUND))
    )
    assert flaw is not None
    assert (flaw.origin.who, flaw.came_as) == ("not_shown", None)


def test_kernel_that_the_log_shows_whole_is_named_though_the_log_begins_late() -> None:
    lines = [*tensor(f"after_launch - {MATMUL} - buf1"), *nan_run()[78:]]
    flaw = bad_value(lines)
    assert flaw is not None
    assert (kernel(lines, flaw.launch), flaw.origin.who, flaw.sure) == (LOG, "kernel", True)


def test_roles_are_learned_from_all_launches() -> None:
    """The second execution finds its own values of the first one in the memory: nothing changes."""
    lines = [*launch("k", arg("buf1", SOUND, (0.0, 2.0))), *launch("k", arg("buf1", (0.0, 2.0), (0.0, 2.0)))]
    prints = prints_of([*lines, *launch("k", arg("arg1_1", SOUND, SOUND))])
    assert (prints.role("k", "buf1"), prints.role("k", "arg1_1"), prints.role("k", "buf9")) == (
        "written",
        "read",
        None,
    )


@pytest.mark.parametrize(
    ("name", "buffer"),
    [("buf12", True), ("reinterpret_tensor(buf3,(4,1),(1,1),0)", True), ("arg3_1", False), ("rebuf3", False)],
)
def test_buffers_are_known_by_name(name: str, buffer: bool) -> None:
    assert is_buffer(name) is buffer


def test_log_without_values_shows_nothing() -> None:
    assert bad_value([f"[ before_launch: {EMBEDDING} ]"]) is None
    assert bad_value(tensor("aoti_model_inputs - arg0_1", "nan", "nan") + embedding()) is None
