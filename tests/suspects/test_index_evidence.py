"""An index is bad only if it leaves everything that it can index."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.model import KernelLaunch, PrintedTensor
from analyzer.suspects.index_evidence import find_bad_index, large_integers, outside
from analyzer.suspects.tensor_evidence import Flaw
from tests.aoti_log import EMBEDDING, embedding, ids, launch, tensor
from tests.suspects.test_tensor_evidence import prints_of

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
