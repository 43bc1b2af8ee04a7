"""An index is bad only if it leaves everything that it can index."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.model import KernelLaunch, PrintedTensor
from analyzer.values.bad_indices import (
    find_bad_index,
    indexes_with_inputs,
    large_integers,
    only_looks_up,
    outside,
    outside_one,
)
from analyzer.values.flaws import Flaw
from tests.aoti_log import EMBEDDING, embedding, ids, launch, tensor
from tests.values.test_bad_values import prints_of

TABLE = PrintedTensor(
    name="arg0_1", line=9, shape=(1000, 64), dtype="float32", elements=64_000, min=-4.5, max=4.5
)
IDS = PrintedTensor(name="arg1_1", line=1, shape=(4, 16), dtype="int64", elements=64, min=3, max=991)


def bad_indices(lines: Sequence[str], before: Sequence[PrintedTensor], kernel: str = EMBEDDING) -> list[Flaw]:
    def read(number: int) -> KernelLaunch:
        return KernelLaunch(
            source=0,
            process="",
            id=number,
            kernel=kernel,
            occurrence=1,
            level=2,
            line=1,
            completion_line=None,
            before=tuple(before),
        )

    return list(find_bad_index(prints_of(lines), read))


def given(high: float) -> PrintedTensor:
    return PrintedTensor(name="arg1_1", line=1, shape=(4, 16), dtype="int64", elements=64, min=3, max=high)


def test_index_behind_the_last_row_is_bad() -> None:
    (flaw,) = bad_indices(embedding(5000), [given(5000), TABLE])
    assert (flaw.value, flaw.table, flaw.extent, flaw.origin.who) == (5000, "arg0_1", 1000, "caller")


def test_last_row_is_sound() -> None:
    assert bad_indices(embedding(999), [given(999), TABLE]) == []


def test_kernel_that_wrote_the_index_is_its_origin() -> None:
    maker = tensor("before_launch - topk_gate_kernel - buf1", 0, 1, size=(4, 16), dtype="long int")
    maker += tensor("after_launch - topk_gate_kernel - buf1", 3, 5000, size=(4, 16), dtype="long int")
    reader = ids(5000, f"before_launch - {EMBEDDING} - buf1")
    index = PrintedTensor(name="buf1", line=27, shape=(4, 16), dtype="int64", elements=64, min=3, max=5000)
    (flaw,) = bad_indices([*maker, *reader], [index, TABLE])
    assert (flaw.origin.who, flaw.origin.launch, flaw.launch) == ("kernel", 0, 1)


def test_buffer_that_no_shown_kernel_wrote_has_no_known_origin() -> None:
    index = PrintedTensor(name="buf1", line=1, shape=(4, 16), dtype="int64", elements=64, min=3, max=5000)
    (flaw,) = bad_indices(ids(5000, f"before_launch - {EMBEDDING} - buf1"), [index, TABLE])
    assert flaw.origin.who == "not_shown"


def test_largest_table_counts() -> None:
    """A position embedding beside the token embedding: which of the two is indexed is not printed."""
    large = PrintedTensor(
        name="arg4_1", line=9, shape=(9000, 64), dtype="float32", elements=576_000, min=-1.5, max=1
    )
    assert bad_indices(embedding(5000), [given(5000), TABLE, large]) == []


@pytest.mark.parametrize(
    "kernel",
    [
        "cpp_fused_clamp_index_0",
        "cpp_fused_embedding_remainder_0",
        "triton_poi_fused_embedding_floor_divide_0",
        "cpp_fused__log_softmax_eq_gather_mul_ne_select_sum_unsqueeze_where_zeros_like_0",
        "cpp_fused__to_copy_add_embedding_mul_sin_unsqueeze_0",
        "triton_poi_fused_bitwise_and_embedding_3",
    ],
)
def test_kernel_that_does_more_than_look_up_is_not_accused(kernel: str) -> None:
    """Which of its integers it indexes with, and what it does with them first, is not printed."""
    assert not only_looks_up(kernel)
    lines = embedding(5000)
    assert (
        bad_indices([line.replace(EMBEDDING, kernel) for line in lines], [given(5000), TABLE], kernel) == []
    )


@pytest.mark.parametrize(
    ("kernel", "only", "inputs"),
    [
        ("triton_poi_fused_embedding_0", True, True),
        ("cpp_fused_index_view_12", True, True),
        ("cpp_fused_index_put_0", True, True),
        ("triton_poi_fused_add_embedding_squeeze_3", False, True),
        ("cpp_fused_clamp_index_0", False, False),
        ("cpp_fused_expand_index_0", False, True),
        ("cpp_fused_gelu_view_1", False, False),
        ("my_embedding_kernel", False, False),
    ],
)
def test_names_tell_what_a_kernel_does_with_its_integers(kernel: str, only: bool, inputs: bool) -> None:
    assert (only_looks_up(kernel), indexes_with_inputs(kernel)) == (only, inputs)


def test_output_of_the_kernel_is_no_table() -> None:
    """A package does not print its constants: the only matrix beside the ids is what the kernel writes."""
    output = PrintedTensor(name="buf0", line=9, shape=(4, 64), dtype="float32", elements=256, min=-1.5, max=2)
    assert bad_indices(embedding(832), [given(832), output]) == []
    maker = tensor(f"before_launch - {EMBEDDING} - buf0") + ids(832, f"before_launch - {EMBEDDING} - arg1_1")
    assert bad_indices(maker, [given(832), output]) == []


def test_table_of_small_integers_counts() -> None:
    table = PrintedTensor(name="arg0_1", line=9, shape=(50_000, 64), dtype="int8", elements=3_200_000)
    assert bad_indices(embedding(49_868), [given(49_868), table]) == []
    assert bad_indices(embedding(50_000), [given(50_000), table])[0].table == "arg0_1"


def test_two_integer_inputs_cannot_be_told_apart() -> None:
    """One can be the table of the other."""
    lookup = PrintedTensor(name="arg2_1", line=1, shape=(9,), dtype="int64", elements=9, min=0, max=9000)
    assert bad_indices(embedding(5000), [given(5000), TABLE, lookup]) == []


def test_view_can_make_a_dimension_as_long_as_all_elements() -> None:
    kernel = "triton_poi_fused_index_view_0"
    for high, found in ((63_999, 0), (64_000, 1)):
        lines = [line.replace(EMBEDDING, kernel) for line in embedding(high)]
        assert len(bad_indices(lines, [given(high), TABLE], kernel)) == found


def test_integers_in_an_output_are_garbage() -> None:
    """An argmax that has not been written yet; an input of the caller would stand before it."""
    garbage = PrintedTensor(name="buf7", line=3, dtype="int64", shape=(4,), elements=4, min=0, max=9e13)
    launched = launch_of([TABLE, garbage])
    assert outside_one(prints_of(embedding()), launched, 1000) is None
    assert outside_one(prints_of(embedding()), launch_of([garbage, TABLE]), 1000) == garbage


def launch_of(before: Sequence[PrintedTensor]) -> KernelLaunch:
    return KernelLaunch(
        source=0,
        process="",
        id=0,
        kernel=EMBEDDING,
        occurrence=1,
        level=2,
        line=1,
        completion_line=None,
        before=tuple(before),
    )


def test_kernels_that_index_nothing_are_not_looked_at() -> None:
    lines = launch("triton_poi_fused_add_0", ("arg1_1", 3, 5000, 3, 5000))
    assert bad_indices(lines, [given(5000), TABLE], "triton_poi_fused_add_0") == []
    assert (
        bad_indices(launch("my_embedding_kernel", ("arg1_1", 3, 5000, 3, 5000)), [given(5000), TABLE], "x")
        == []
    )


def test_kernel_without_a_table_that_is_shown_tells_nothing() -> None:
    """Weights of an AOTInductor package are constants, and not printed."""
    assert bad_indices(embedding(5000), [given(5000)]) == []


@pytest.mark.parametrize(
    ("low", "high", "extent", "value"),
    [
        (0, 999, 1000, None),
        (0, 1000, 1000, 1000),
        (-1000, 5, 1000, None),
        (-1001, 5, 1000, -1001),
        (0, 2_000_010, 2_000_000, None),
        (0, 2_100_000, 2_000_000, 2_100_000),
    ],
)
def test_negative_indices_count_from_the_end_and_large_ones_are_rounded(
    low: float, high: float, extent: int, value: float | None
) -> None:
    tensor = PrintedTensor(name="i", line=1, dtype="int64", min=low, max=high)
    assert outside(tensor, extent) == value


def test_other_dtypes_are_no_indices() -> None:
    assert outside(PrintedTensor(name="x", line=1, dtype="float32", min=0, max=5000), 10) is None
    assert outside(PrintedTensor(name="x", line=1, min=0, max=5000), 10) is None


def test_integer_beyond_all_operands_is_evidence() -> None:
    stride = PrintedTensor(
        name="arg9_1", line=3, shape=(1,), dtype="int64", elements=1, min=16777216, max=16777216
    )
    launched = KernelLaunch(
        source=0,
        process="",
        id=1,
        kernel="k",
        occurrence=1,
        level=2,
        line=1,
        completion_line=None,
        before=(TABLE, stride),
    )
    (reason,) = large_integers(launched)
    assert reason.text == "arg9_1 holds 16777216, and no operand has more than 64000 elements"
    assert reason.lines == [3]
