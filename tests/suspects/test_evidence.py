"""Evidence against an op: what counts, how much, against what fault."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.model import OpDetail, OpFacts
from analyzer.schema import FaultKind, OpRef, Reason, SourceFrame, TensorInfo
from analyzer.suspects.evidence import WEIGHTS, Context, collect
from analyzer.suspects.rank import LIKELY_SHARE, named, rank
from tests.faults_made import fault


def op(name: str, line: int = 10, **facts: object) -> OpFacts:
    """An op of the window whose name is its only leaf."""
    settings: dict[str, object] = {
        "ref": OpRef(name=name, id=line, process="", input=0, line=line, device="gpu:0", step=1),
        "launch_line": line,
        "completion_line": line + 1,
        "run": 0,
        "expr": None,
        "leaves": (name,),
        "detail": OpDetail(),
    }
    return OpFacts(**(settings | facts))  # type: ignore[arg-type]


def tensor(*shape: int | None, dtype: str = "f32", role: str = "input") -> TensorInfo:
    return TensorInfo(shape=list(shape), dtype=dtype, role=role)


def reasons(one: OpFacts, kind: FaultKind = "illegal_address") -> dict[str, Reason]:
    context = Context(fault=fault(kind=kind), launches_before=300)
    return {reason.evidence: reason for reason in collect(one, context)}


def order(ops: Sequence[OpFacts], kind: FaultKind = "illegal_address") -> list[str]:
    return [suspect.op.name for suspect in rank(ops, fault(kind=kind), 300)]


def test_address_fault_suspects_custom_then_paged_then_attention_then_vendor_matmul() -> None:
    """Public reports: user kernels, gathers and caches far above vendor libraries (formats.md 9)."""
    names = ["matmul", "gelu", "flash_attention", "kv_cache_load", "custom__my_op", "softmax"]
    found = order([op(name, line) for line, name in enumerate(names, start=1)])
    assert found[:3] == ["custom__my_op", "kv_cache_load", "flash_attention"]
    assert set(found[-2:]) == {"matmul", "gelu"}


def test_assert_suspects_index_ops() -> None:
    names = ["custom__my_op", "gather", "matmul", "topk"]
    assert order([op(n, i) for i, n in enumerate(names)], "device_assert")[:2] == ["gather", "topk"]


def test_nan_suspects_ops_that_leave_the_domain() -> None:
    names = ["matmul", "sqrt", "softmax", "gather"]
    assert order([op(n, i) for i, n in enumerate(names)], "nan")[:2] == ["sqrt", "softmax"]


def test_strongest_family_of_a_fused_op_counts_once() -> None:
    fused = op("Prologue(gather, mul)", leaves=("gather", "mul"))
    assert reasons(fused)["family"].weight == WEIGHTS["address: index"]


def test_op_that_never_ran_before_is_more_suspect_than_one_that_ran_soundly() -> None:
    """Novelty outweighs the difference of two families."""
    known, new = op("attention", 1, novel=False, count_before=12), op("rope", 2, novel=True)
    assert order([known, new]) == ["rope", "attention"]
    assert reasons(new)["novelty"].text == "never launched in the 300 launches before the window"
    assert reasons(known)["history"].weight == 0.0
    assert not {"novelty", "history"} & reasons(op("x")).keys()


def test_integer_operand_beside_data_is_a_way_out_of_the_extent() -> None:
    lookup = op("x", tensors=(tensor(1000, 64), tensor(32, dtype="si64"), tensor(32, 64, role="output")))
    assert reasons(lookup)["index_operand"].text.startswith("takes 32 si64 values")
    assert "index_operand" not in reasons(op("x", tensors=(tensor(32, dtype="si64"),)))
    assert "index_operand" not in reasons(op("x", tensors=(tensor(8, 8), tensor(8, 8))))
    assert "index_operand" not in reasons(lookup, "nan")


@pytest.mark.parametrize(
    ("shape", "evidence"),
    [((65536, 32768), "huge"), ((65536, 32767), None), ((0, 64), "empty"), ((None, 65536, 65536), None)],
)
def test_sizes_at_an_edge_are_evidence(shape: tuple[int | None, ...], evidence: str | None) -> None:
    """2^31 elements wrap 32-bit index arithmetic; a dynamic size is not known."""
    found = reasons(op("x", tensors=(tensor(*shape),))).keys() & {"huge", "empty"}
    assert found == ({evidence} if evidence else set())


def test_odd_rows_count_against_misaligned_access_only() -> None:
    odd = op("x", tensors=(tensor(8, 65),))
    assert "odd_alignment" in reasons(odd, "misaligned_address")
    assert "odd_alignment" not in reasons(odd)
    assert "odd_alignment" not in reasons(op("x", tensors=(tensor(8, 64),)), "misaligned_address")


def test_reasons_cite_the_launch_and_the_strongest_comes_first() -> None:
    found = collect(
        op("custom__paged_lookup", 302, novel=False, tensors=(tensor(9, 9), tensor(9, dtype="i64"))),
        Context(fault=fault(), launches_before=9),
    )
    assert {line for reason in found for line in reason.lines} == {302}
    weights = [reason.weight for reason in found]
    assert weights == sorted(weights, reverse=True)


class TestRank:
    """Order and shares."""

    def test_shares_add_up_to_one(self) -> None:
        names = ["custom__a", "matmul", "gelu", "gather"]
        shares = [one.share for one in rank([op(n, i) for i, n in enumerate(names)], fault(), 0)]
        assert sum(shares) == pytest.approx(1, abs=1e-3)
        assert shares == sorted(shares, reverse=True)

    def test_later_one_of_equals_comes_first(self) -> None:
        """A fault is met soon after it happened."""
        found = rank([op("gather", 10), op("gather", 20), op("gather", 15)], fault(), 0)
        assert [one.op.line for one in found] == [20, 15, 10]
        assert [one.rank for one in found] == [1, 2, 3]

    def test_two_equal_suspects_make_nobody_likely(self) -> None:
        first, second = rank([op("custom__a", 1), op("custom__b", 2)], fault(), 0)
        assert first.share == second.share <= LIKELY_SHARE

    def test_suspect_carries_what_is_known_of_its_op(self) -> None:
        frame = SourceFrame(file="app.py", line=30, function="build")
        one = op("gather", 7, source=(frame,), tensors=(tensor(4),), inner=(op("inner", 8).ref,))
        (found,) = rank([one], fault(), 0)
        assert (found.source, found.share, found.op.line) == ([frame], 1.0, 7)
        assert [inner.name for inner in found.inner] == ["inner"]

    def test_named_op_is_the_only_suspect(self) -> None:
        reason = Reason(evidence="exact_report", text="the report names it", weight=8.0, lines=[5])
        found = named(op("gather"), [reason])
        assert (found.rank, found.share, found.weight) == (1, 1.0, 8.0)
