"""Recorded PyTorch op logs as plans."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import ReplaySetupError
from analyzer.model import OpDetail, OpFacts
from analyzer.replay.plan import PlanOp, PlanTensor, read_plan, write_plan
from analyzer.replay.planning import with_user_ops
from analyzer.replay.planning.torch_log import plan_torch_op
from analyzer.replay.planning.triton_log import is_recorded_kernel, plan_kernel
from analyzer.replay.planning.window import LoggedOp, split_details
from analyzer.schema import OpRef
from tests.replay.planning.recorded import BAD, FIRST, LOG, argument, named, plan_of, tensor, whole_plan


def logged(name: str, details: str, device: str = "cpu") -> LoggedOp:
    ref = OpRef(name=name, id=1, process="", input=0, line=1, device=device)
    facts = OpFacts(
        ref=ref,
        launch_line=1,
        completion_line=None,
        run=0,
        expr=None,
        leaves=(name,),
        detail=OpDetail(),
    )
    return LoggedOp(facts=facts, details=tuple(split_details(details)))


def planned(name: str, details: str) -> PlanOp:
    return plan_torch_op(logged(name, details), 0, {})


def test_an_exact_report_plans_the_op_it_names() -> None:
    plan = plan_of(LOG)
    (op,) = plan.ops
    assert (op.call, op.overload, op.log_id, op.suspect) == ("aten::embedding", "default", BAD, 1)
    assert op.source is not None
    assert (op.source.file, op.source.line) == ("srv/app/step.py", 8)
    assert tensor(op, "weight") == PlanTensor(shape=(1000, 16), dtype="float32", device="cpu")
    indices = tensor(op, "indices")
    assert (indices.low, indices.high, indices.extent, indices.fidelity) == (65, 1000, 1000, "statistics")


def test_a_window_that_is_asked_for_is_planned_whole_and_in_launch_order() -> None:
    plan = whole_plan(LOG)
    idents = [op.log_id for op in plan.ops]
    assert idents == list(range(FIRST, BAD + 1))
    assert plan.runnable() == tuple(range(len(plan.ops)))
    assert [op.suspect for op in plan.ops if op.suspect] == [1]


def test_gaps_of_an_index_list_stay_gaps() -> None:
    put = next(op for op in whole_plan(LOG).ops if op.name.startswith("aten::index_put"))
    found = argument(put, "indices").tensors
    assert found is not None
    assert [one and one.shape for one in found] == [None, (2,), None, (2,)]
    assert [one and one.extent for one in found] == [None, 2, None, 16]


def test_tensors_of_a_list_are_one_argument() -> None:
    cat = named(whole_plan(LOG), "aten::cat")
    found = argument(cat, "tensors").tensors
    assert found is not None
    assert [one.shape for one in found if one] == [(4, 7, 16), (4, 7, 16)]
    assert argument(cat, "dim").value == -1


def test_strides_of_a_view_are_kept() -> None:
    bmm = named(whole_plan(LOG), "aten::bmm")
    left = tensor(bmm, "self")
    assert (left.shape, left.stride, left.dtype) == ((8, 4, 16), (112, 32, 1), "bfloat16")


def test_the_target_of_a_loss_is_no_device() -> None:
    loss = named(whole_plan(LOG), "aten::nll_loss_forward")
    target = tensor(loss, "target")
    assert (target.shape, target.dtype, target.extent, target.high) == ((4,), "int64", 10, 9)
    assert loss.device == "cpu"


def test_a_type_alone_is_a_scalar_tensor_save_where_the_argument_is_a_type() -> None:
    op = planned("aten::mul", "target=cpu;self=float32;other=float32;dtype=bfloat16;overload=Tensor")
    assert tensor(op, "self").shape == ()
    assert argument(op, "dtype").text == "bfloat16"
    assert op.overload == "Tensor"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), ("-3", -3), ("_", []), ("None", None)],
)
def test_numbers_nothing_and_empty_lists_are_values(text: str, value: object) -> None:
    op = planned("aten::add", f"target=cpu;self=4xfloat32;other={text}")
    assert (argument(op, "other").value, argument(op, "other").text) == (value, None)


@pytest.mark.parametrize("text", ["-inf", "1,2", "True", "99999999999999999999999", "sum"])
def test_what_json_has_no_word_for_stays_text(text: str) -> None:
    assert argument(planned("aten::x", f"target=cpu;self=4xfloat32;other={text}"), "other").text == text


@pytest.mark.parametrize(
    ("name", "details", "word"),
    [
        ("aten::view", "target=cpu;self=4xfloat32;size=" + "1," * 30, "cut off"),
        ("aten::mul", "target=cpu;self=nestedxfloat32", "nested"),
        ("aten::x", "target=cpu;a=<object object at 0x7f>", "cannot hold"),
        ("aten::x", "target=cpu;a.0.1=4xfloat32", "list of lists"),
        ("aten::x", "target=cpu;a.99999999999=4xfloat32", "not a place"),
        ("c10d::allreduce_", "target=cuda:0;tensors.0=4xfloat32", "other ranks"),
        ("higher_order::while_loop", "target=cpu;a=4xfloat32", "functions"),
        ("aten::multinomial", "target=cpu;self=4xfloat32;num_samples=1", "values of self"),
        ("aten::mul", "", "no operands"),
    ],
)
def test_what_cannot_be_rebuilt_says_why(name: str, details: str, word: str) -> None:
    op = planned(name, details)
    assert op.why_not is not None
    assert word in op.why_not
    assert op.arguments == ()


def test_a_generator_is_left_to_the_op() -> None:
    op = planned("aten::randperm", "target=cpu;n=10;generator=<torch._C.Generator object at 0x7f>")
    assert op.why_not is None
    assert argument(op, "generator") == argument(planned("aten::x", "target=cpu;generator=None"), "generator")


def test_a_triton_kernel_needs_its_own_program_or_a_function_of_its_name() -> None:
    op = logged("topk_gate_kernel", "target=cuda:0;grid=4x1;logits=64x8xfloat32;n=8", "cuda:0")
    assert is_recorded_kernel(op)
    plan = plan_kernel(op, 0)
    assert plan.why_not is not None
    assert [one.name for one in plan.arguments] == ["logits", "n"]


def test_a_function_of_the_user_makes_its_op_runnable() -> None:
    plan = whole_plan(LOG)
    kernel = plan_kernel(logged("k", "target=cuda:0;grid=1;x=4xfloat32", "cuda:0"), 0)
    made = with_user_ops(msgspec.structs.replace(plan, ops=(kernel,)), {"k"})
    assert (made.ops[0].executor, made.ops[0].why_not) == ("user", None)
    assert with_user_ops(plan, {"k"}) == plan


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    plan = whole_plan(LOG)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ('"step":', '"stepp":', "unknown field `stepp`"),
        ('"from_op": null', '"from_op": 40', "takes an input from op 40, which is not above it"),
        ('"version": "1"', '"version": "7"', "plan version 7"),
    ],
)
def test_an_edited_plan_that_makes_no_sense_is_refused(tmp_path: Path, was: str, now: str, why: str) -> None:
    path = tmp_path / "plan.json"
    write_plan(whole_plan(LOG), path)
    path.write_text(path.read_text().replace(was, now, 1))
    with pytest.raises(ReplaySetupError, match=why):
        read_plan(path)


_KEYS = st.sampled_from(
    ["self", "index", "indices.0", "indices.3", "dim", "target", "weight", "self.min", "self.max",
     "self.strides", "overload", "output_size", "num_classes", "", "x.y.z", "generator"]
)  # fmt: skip
_VALUES = st.one_of(
    st.text(alphabet="0123456789x-.,e_", max_size=70),
    st.sampled_from(
        ["4x8xfloat32", "17xint64", "bool", "0xint64", "9" * 30 + "xint64", "nestedxint64", "1,-2"]
    ),
)


@settings(deadline=None)  # machines are busy
@given(
    name=st.sampled_from(
        [
            "aten::index",
            "aten::gather",
            "aten::embedding",
            "aten::take_along_dim",
            "aten::one_hot",
            "aten::index_put_",
            "aten::max_unpool2d",
            "aten::nll_loss_forward",
            "aten::_embedding_bag",
            "aten::x",
        ]
    ),
    pairs=st.lists(st.tuples(_KEYS, _VALUES), max_size=8),
)
def test_no_detail_makes_a_plan_fail(name: str, pairs: list[tuple[str, str]]) -> None:
    details = "target=cpu;" + ";".join(f"{key}={value}" for key, value in pairs)
    op = planned(name, details)
    assert op.why_not is not None or all(one.shape is not None for one in op.tensors())
    assert msgspec.json.decode(msgspec.json.encode(op), type=PlanOp) == op


def test_an_op_that_only_checks_what_another_left_is_not_executed() -> None:
    """It would fail again, and be taken for the op that went wrong."""
    op = planned("aten::_linalg_check_errors", "target=cpu;info=int32;api_name=cholesky;is_matrix=True")
    assert op.why_not is not None
    assert "checks" in op.why_not
