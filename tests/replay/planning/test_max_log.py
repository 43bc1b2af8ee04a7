"""MAX op logs as plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import InputError, ReplaySetupError
from analyzer.grammar import data_path
from analyzer.parse.fusion_tree import parse_fusion_tree
from analyzer.pipeline import Options, open_analysis
from analyzer.replay.plan import Plan
from analyzer.replay.planning import build_plan
from analyzer.replay.planning.max_log import plan_max_op
from analyzer.replay.planning.max_types import Trees, form_of
from tests.replay.planning.recorded import named, op_of, plan_of
from tests.replay.planning.test_torch_log import logged

SAMPLES = data_path("sample_logs")
PAGED = SAMPLES / "max_ops" / "paged_async" / "input.log.gz"
IR = SAMPLES / "max_ops" / "paged_async_ir" / "decoder.mojo"


@pytest.fixture(scope="module")
def typed() -> Plan:
    return plan_of(PAGED, IR)


def test_with_an_ir_file_every_op_of_the_window_can_run(typed: Plan) -> None:
    assert typed.runnable() == tuple(range(19))
    assert {op.executor for op in typed.ops} == {"max"}
    assert typed.material == ("types",)


def test_an_ir_file_of_the_analysis_serves_as_well(typed: Plan) -> None:
    with open_analysis([str(PAGED)], Options(ir=(IR,))) as analysis:
        plan = build_plan(analysis)
    assert [op.arguments for op in plan.ops] == [op.arguments for op in typed.ops]


def test_a_custom_op_has_its_operands_and_no_extent_that_nobody_told(typed: Plan) -> None:
    op = op_of(typed, 302)
    assert (op.call, op.suspect, op.stand_in) == ("custom::paged_lookup", 1, None)
    tensors = op.tensors()
    assert [(one.shape, one.dtype, one.extent) for one in tensors] == [
        ((8192,), "float32", None),
        ((8192,), "int64", None),
    ]
    assert {one.fidelity for one in tensors} == {"made"}
    assert [one.shape for one in op.outputs] == [(8192,)]


def test_a_fused_op_is_its_parts_with_what_they_do_not_make_themselves(typed: Plan) -> None:
    op = named(typed, "Epilogue(matmul, View(static.reshape, add), operandIndices=[0])")
    assert op.parts == ("mo.matmul", "mo.add")
    assert [one.shape for one in op.tensors()] == [(64, 512), (512, 128), (64, 128)]
    assert op.stand_in is not None


def test_without_types_the_op_says_what_would_tell_them() -> None:
    op = op_of(plan_of(PAGED), 302)
    assert op.why_not is not None
    assert "--ir FILE" in op.why_not
    assert op.arguments == ()


def test_info_lines_give_a_matmul_its_operands() -> None:
    plan = plan_of(PAGED)
    alone, unary, binary = (
        named(plan, name)
        for name in (
            "matmul",
            "Epilogue(matmul, silu, operandIndices=[0])",
            "Epilogue(matmul, add, operandIndices=[0])",
        )
    )
    assert (alone.call, alone.stand_in) == ("mo.matmul", None)
    assert [one.shape for one in alone.tensors()] == [(64, 512), (512, 128)]
    assert unary.parts == ("mo.matmul", "mo.silu")
    assert (binary.call, binary.parts) == ("mo.matmul", ())
    assert binary.stand_in is not None
    assert "matmul alone" in binary.stand_in


def test_the_fusion_tree_of_an_error_text_gives_types() -> None:
    (op,) = plan_of(SAMPLES / "max_errors" / "oob_sync" / "input.log").ops
    assert (op.call, [one.shape for one in op.tensors()]) == ("custom::strided_gather", [(4096,)])
    assert op.device == "gpu:0"


def trees(text: str) -> Trees:
    tree = parse_fusion_tree(text.splitlines())
    return Trees(by_form={form_of(tree.name) or "": tree})


@pytest.mark.parametrize(
    ("out", "extent"), [("[3, 50, 8]", 4), ("[4, 3, 8]", 50), ("[4, 50, 3]", 8), ("[2, 2]", 4)]
)
def test_the_shapes_of_a_gather_tell_what_it_indexes(out: str, extent: int) -> None:
    tree = trees(
        f"mo.gather : (!mo.tensor<[4, 50, 8], f32>, !mo.tensor<[3], si64>) -> !mo.tensor<{out}, f32>"
    )
    op = plan_max_op(logged("gather", "", "gpu:0"), 0, tree)
    assert [one.extent for one in op.tensors()] == [None, extent]


def test_a_dynamic_dimension_makes_no_call() -> None:
    tree = trees('mo.relu : (!mo.tensor<["batch", 8], f32>) -> !mo.tensor<["batch", 8], f32>')
    op = plan_max_op(logged("relu", "", "gpu:0"), 0, tree)
    assert op.why_not is not None
    assert "dynamic" in op.why_not


def test_details_of_older_versions_are_operands(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(
        "[OP] LAUNCH matmul [id=3] A=1x64x32xbfloat16;B=16x32xbfloat16;C=1x64x16xbfloat16;transpose_b=true;"
        "target=gpu:0\n[OP] COMPLETE matmul [id=3] target=gpu:0\n",
        encoding="utf-8",
    )
    (op,) = plan_of(log, window=(1, 2)).ops
    assert (op.call, op.device, op.why_not) == ("mo.matmul", "gpu:0", None)
    assert [(one.name, one.tensor and one.tensor.shape, one.text) for one in op.arguments] == [
        ("A", (1, 64, 32), None),
        ("B", (16, 32), None),
        ("transpose_b", None, "true"),
    ]


def test_a_kernel_that_only_an_error_names_is_no_op() -> None:
    (op,) = plan_of(SAMPLES / "device_assert" / "embed_oob" / "input.log").ops
    assert (op.executor, op.line) == ("user", None)
    assert op.why_not is not None
    assert "trace-analyze record" in op.why_not


def test_a_material_that_is_missing_or_no_ir_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplaySetupError, match="no such file"):
        plan_of(PAGED, tmp_path / "gone")
    other = tmp_path / "other.mojo"
    other.write_text("def main():\n    pass\n", encoding="utf-8")
    with pytest.raises(InputError, match="ir-output-dir"):
        plan_of(PAGED, other)
