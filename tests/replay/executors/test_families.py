"""Every family on real tensors: healthy inputs pass with the recorded result, a bad index fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replay.worker.jobs import Ran, indices, op, run_here, tensor

T = tensor
EXTENT_4 = T(5, dtype="int64", extent=4)


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


def _named(*tensors: Any, **scalars: Any) -> dict[str, Any]:
    return {**{f"arg{place}": one for place, one in enumerate(tensors)}, **scalars}


# call, operands and scalars, shape of the result. The result's type is given where the family needs it.
HEALTHY: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("mo.matmul", _named(T(8, 4), T(4, 6)), (8, 6)),
    ("CUBLAS_matmul", _named(T(8, 4), T(6, 4), transpose_b="true"), (8, 6)),
    ("aoti_torch_cuda_mm_out", _named(T(8, 4), T(4, 6)), (8, 6)),
    ("extern_kernels.bmm", _named(T(2, 8, 4), T(2, 4, 6)), (2, 8, 6)),
    ("aoti_torch_cpu_addmm_out", _named(T(6), T(8, 4), T(4, 6)), (8, 6)),
    ("linear", _named(T(8, 4), T(6, 4), T(6)), (8, 6)),
    ("mo.add", _named(T(8, 4), T(1, 4)), (8, 4)),
    ("mo.rsqrt", _named(T(8, 4)), (8, 4)),
    ("mo.gelu", _named(T(8, 4)), (8, 4)),
    ("mul", _named(T(8, 4), other=2), (8, 4)),
    ("mo.max", _named(T(8, 4), T(8, 4)), (8, 4)),
    ("where", _named(T(8, dtype="bool"), T(8), T(8)), (8,)),
    ("mo.layer_norm", _named(T(8, 4), T(4), T(4), epsilon=1e-5), (8, 4)),
    ("native_layer_norm", _named(T(8, 4), T(4), T(4)), (8, 4)),
    ("mo.reduce.rms_norm", _named(T(8, 4, dtype="bfloat16"), T(4, dtype="bfloat16")), (8, 4)),
    ("mo.group_norm", _named(T(2, 4, 3), T(4), T(4), num_groups=2), (2, 4, 3)),
    ("mo.reduce.softmax", _named(T(8, 4)), (8, 4)),
    ("_softmax", _named(T(8, 4), dim=0), (8, 4)),
    ("mo.reduce.mean", _named(T(8, 4)), (8, 1)),
    ("sum", _named(T(8, 4), dim=0), (4,)),
    ("mo.reduce.max", _named(T(8, 4)), (8, 1)),
    ("argmax", _named(T(8, 4)), (8, 1)),
    ("mo.gather", _named(T(4, 3), EXTENT_4, axis=0), (5, 3)),
    ("mo.gather", _named(T(3, 4), EXTENT_4), (3, 5)),
    ("gather", _named(T(4, 3), T(2, 3, dtype="int64", extent=4)), (2, 3)),
    ("mo.gather_nd", _named(T(4, 3), T(5, 1, dtype="int64", extent=4)), (5, 3)),
    ("index_select", _named(T(4, 3), EXTENT_4), (5, 3)),
    ("embedding", _named(EXTENT_4, T(4, 3)), (5, 3)),
    ("index", _named(T(4, 3), EXTENT_4), (5, 3)),
    ("take", _named(T(2, 2), EXTENT_4), (5,)),
    ("mo.scatter", _named(T(4, 3), T(2, 3), T(2, 3, dtype="int64", extent=4), axis=0), (4, 3)),
    ("scatter_add", _named(T(4, 3), T(2, 3, dtype="int64", extent=4), T(2, 3)), (4, 3)),
    ("index_add", _named(T(4, 3), EXTENT_4, T(5, 3)), (4, 3)),
    ("mo.scatter_nd", _named(T(4, 3), T(5, 3), T(5, 1, dtype="int64", extent=4)), (4, 3)),
    ("index_put", _named(T(4, 3), EXTENT_4, T(5, 3)), (4, 3)),
    ("paged_lookup", _named(T(4, 16, 2), T(3, dtype="int32", extent=4)), (3, 16, 2)),
    ("sdpa", _named(T(2, 4, 8, 16), T(2, 4, 8, 16), T(2, 4, 8, 16)), (2, 4, 8, 16)),
    ("_scaled_dot_product_flash_attention", _named(*[T(1, 2, 4, 8)] * 3), (1, 2, 4, 8)),
    ("mo.cast", _named(T(8, 4)), (8, 4)),
    ("copy", _named(T(8, 4)), (8, 4)),
    ("mo.transpose", _named(T(8, 4)), (4, 8)),
    ("permute", _named(T(2, 3, 4), dims=[2, 0, 1]), (4, 2, 3)),
    ("mo.static.reshape", _named(T(8, 4)), (32,)),
    ("mo.concat", _named(T(8, 4), T(8, 4)), (16, 4)),
    ("cat", _named((T(8, 4), T(8, 2)), dim=1), (8, 6)),
    ("mo.slice", _named(T(8, 4)), (3, 4)),
    ("mo.static.broadcast_to", _named(T(1, 4)), (8, 4)),
    ("stack", _named(T(4), T(4)), (2, 4)),
    ("mo.tile", _named(T(1, 4)), (3, 4)),
    ("constant_pad_nd", _named(T(3, 4)), (5, 4)),
    ("full", {"value": 3}, (2, 2)),
    ("mo.range", {}, (7,)),
    ("mo.top_k", _named(T(8, 10)), (8, 3)),
    ("topk", _named(T(8, 10), k=3), (8, 3)),
    ("sort", _named(T(8, 10)), (8, 10)),
    ("cumsum", _named(T(8, 10)), (8, 10)),
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
def test_every_family_runs_with_healthy_inputs(tmp_path: Path, device: str) -> None:
    """``gpu:0`` is the cpu where torch has none; the plan of a log from a GPU server says so."""
    ops = [
        op(call, number, arguments=arguments, outputs=(T(*shape, device=device),))
        for number, (call, arguments, shape) in enumerate(HEALTHY)
    ]
    ran = run_here(tmp_path, ops, timing_runs=2)
    assert ran.code == 0, ran.output
    assert not [(one.name, one.why) for one in ran.journal.of("skipped")]
    shapes = {one.number: (one.name, tuple(one.outputs[0].shape)) for one in ran.journal.of("done")}
    assert shapes == {number: (call, shape) for number, (call, _, shape) in enumerate(HEALTHY)}


def _run(folder: Path, call: str, arguments: dict[str, Any], **settings: Any) -> Ran:
    return run_here(folder, [op(call, arguments=arguments)], **settings)


BAD = indices(0, 4, extent=4)
BAD_INDICES: list[tuple[str, dict[str, Any]]] = [
    ("mo.gather", _named(T(4, 3), BAD)),
    ("mo.gather", _named(T(4, 3), indices(0, -5, extent=4))),
    ("embedding", _named(BAD, T(4, 3))),
    ("index_select", _named(T(4, 3), indices(0, -1, extent=4))),
    ("index", _named(T(4, 3), BAD)),
    ("take", _named(T(2, 2), BAD)),
    ("mo.scatter", _named(T(4), T(2), BAD)),
    ("scatter_add", _named(T(4), BAD, T(2))),
    ("index_put", _named(T(4, 3), BAD, T(2, 3))),
    ("paged_lookup", _named(T(4, 16, 2), BAD)),
    ("mo.gather_nd", _named(T(4, 3), T(1, 1, dtype="int64", fidelity="recorded", values=(4,), extent=4))),
]


@pytest.mark.parametrize(("call", "arguments"), BAD_INDICES)
def test_a_recorded_index_out_of_range_is_a_fault_and_its_control_passes(
    tmp_path: Path, call: str, arguments: dict[str, Any]
) -> None:
    ran = _run(tmp_path, call, arguments)
    assert ran.events() == [("op", 0), ("failed", 0)]
    assert ran.first("failed").why is None, ran.first("failed").error
    assert _run(tmp_path, call, arguments, valid=(0,)).code == 0


def test_an_index_from_the_end_is_sound_where_max_takes_it(tmp_path: Path) -> None:
    assert _run(tmp_path, "mo.gather", _named(T(4, 3), indices(0, -4, extent=4))).code == 0


def test_a_fused_op_runs_as_its_parts(tmp_path: Path) -> None:
    """``Prologue(View(static.broadcast_to, Elementwise(gelu, mul, add)), reduce.softmax)``."""
    fused = op(
        "fused",
        parts=("mo.gelu", "mo.mul", "mo.add", "mo.static.broadcast_to", "mo.reduce.softmax"),
        arguments=_named(T(8, 4), T(8, 4), T(1, 4)),
        outputs=(T(8, 4),),
    )
    ran = run_here(tmp_path, [fused])
    assert ran.code == 0, ran.output
    assert ran.first("done").outputs[0].shape == [8, 4]


def test_a_fused_lookup_finds_its_table_among_the_operands(tmp_path: Path) -> None:
    """As in an Inductor kernel ``triton_poi_fused_add_embedding_0``, whose operands are in any order."""
    good = T(5, dtype="int64", extent=4)
    fused = op("triton", parts=("embedding", "add"), arguments=_named(T(5, 3), good, T(4, 3)))
    ran = run_here(tmp_path, [fused])
    assert ran.code == 0, ran.output
    bad = indices(0, 1, 2, 3, 4, extent=4)
    fused = op("triton", parts=("embedding", "add"), arguments=_named(T(5, 3), bad, T(4, 3)))
    assert run_here(tmp_path, [fused]).first("failed").error_type == "IndexError"


def test_shapes_that_do_not_fit_are_no_fault(tmp_path: Path) -> None:
    failed = _run(tmp_path, "mo.matmul", _named(T(4, 3), T(5, 6))).first("failed")
    assert failed.why == "call"


@pytest.mark.parametrize(
    ("call", "arguments", "why"),
    [
        ("mo.conv", _named(T(4)), "nothing says what conv does in terms of torch"),
        ("mo.matmul", _named(T(4, 4)), "matmul takes 2 operands, the plan has 1"),
        ("mo.gather", _named(T(4)), "gather needs data and an index, the plan has 1 operands"),
    ],
)
def test_what_no_family_can_express_is_skipped(
    tmp_path: Path, call: str, arguments: dict[str, Any], why: str
) -> None:
    ran = _run(tmp_path, call, arguments)
    assert (ran.code, ran.first("skipped").why) == (0, why)
    assert ran.events() == [("skipped", 0), ("bye", None)]
