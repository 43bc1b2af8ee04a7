"""Launches of AOTInductor's value printer."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from analyzer.grammar import data_path
from analyzer.model import PrintedTensor
from analyzer.replay.plan import PlanTensor
from analyzer.replay.planning.aoti import printed
from analyzer.replay.planning.inductor import Named, find_call
from tests.replay.planning.recorded import plan_of, tensor, whole_plan
from tests.replay.planning.test_saved_files import ONE_TENSOR, write

SAMPLES = data_path("sample_logs") / "aoti_printer"


def given(name: str, shape: tuple[int, ...], dtype: str = "float32", *, written: bool = False) -> Named:
    return Named(name=name, tensor=PlanTensor(shape=shape, dtype=dtype, device="cpu"), written=written)


@pytest.mark.parametrize("case", ["index_cuda", "index_cuda_python"])
def test_printed_indices_are_looked_up_by_pytorchs_own_op(case: str) -> None:
    (log,) = (SAMPLES / case).glob("input.log*")
    (op,) = plan_of(log).ops
    assert (op.name, op.call, op.suspect) == ("triton_poi_fused_embedding_0", "aten::embedding", 1)
    indices = tensor(op, "indices")
    assert indices.values is not None
    assert (5000 in indices.values, len(indices.values), indices.extent) == (True, 64, 1000)
    assert (indices.fidelity, tensor(op, "weight").fidelity) == ("recorded", "statistics")
    assert tensor(op, "weight").device == "cuda:0"
    assert op.stand_in is not None
    assert ("float32" in op.stand_in) == (case == "index_cuda_python")  # that wrapper prints no dtype


@pytest.mark.parametrize(
    ("shown", "low"), [(4095.0, 4095), (-3.0, -3), (1.67772e7, 16777150), (-1.67772e7, -16777150)]
)
def test_rounding_of_the_printer_puts_no_index_out_of_range(shown: float, low: int) -> None:
    found = printed(PrintedTensor(name="i", line=1, shape=(2,), dtype="int64", min=shown, max=shown), "cpu")
    assert found is not None
    assert (found.low, found.high, found.fidelity) == (low, low, "statistics")


def test_what_is_not_finite_is_no_end_of_a_range() -> None:
    nan = float("nan")
    one = PrintedTensor(name="x", line=1, shape=(2,), dtype="float32", min=nan, max=nan, values=(1.0, nan))
    found = printed(one, "cpu")
    assert found is not None
    assert (found.low, found.high, found.values, found.fidelity) == (None, None, (1.0, "nan"), "recorded")


def test_a_table_that_was_not_printed_makes_no_call() -> None:
    (op,) = plan_of(SAMPLES / "index_cpu_package" / "input.log").ops
    assert op.why_not is not None
    assert "table" in op.why_not


def test_names_alone_make_no_call() -> None:
    plan = plan_of(SAMPLES / "names_late" / "input.log")
    assert plan.runnable() == ()
    assert {op.why_not for op in plan.ops if "PRINTER=2" in (op.why_not or "")} == {
        op.why_not for op in plan.ops
    }


def test_a_kernel_written_by_hand_keeps_its_operands_for_a_function_of_the_user() -> None:
    (op,) = plan_of(SAMPLES / "read_back_fails" / "input.log.gz").ops
    assert (op.executor, op.why_not is None) == ("user", False)
    assert [one.name for one in op.arguments][:4] == ["buf8", "arg8_1", "buf7", "arg9_1"]


def saved_log(folder: Path) -> Path:
    """Level 1: the same kernel twice, so that the files are of its second launch."""
    saved = "aoti_torch_save_tensor_handle: Saved tensor to /srv/app/tmp/aoti_torch"
    lines = [
        f"{saved}{event}_launch_my_kernel_arg3_1_cpu.pt" for _ in range(2) for event in ("before", "after")
    ]
    log = folder / "serve.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return log


def test_saved_files_are_of_the_last_launch_of_their_kernel(tmp_path: Path) -> None:
    log = saved_log(tmp_path)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    file = write(dumps / "aoti_torchbefore_launch_my_kernel_arg3_1_cpu.pt", ONE_TENSOR)
    first, last = whole_plan(log, dumps).ops
    assert (first.arguments, "later launch" in (first.why_not or "")) == ((), True)
    assert last.arguments[0].name == "arg3_1"
    found = tensor(last, "arg3_1")
    assert (found.shape, found.dtype, found.file) == ((4, 8), "int64", str(file))
    assert found.fidelity == "recorded"


def test_saved_files_that_are_not_here_are_asked_for(tmp_path: Path) -> None:
    plan = whole_plan(saved_log(tmp_path))
    assert plan.ops
    assert all("give their folder" in (op.why_not or "") for op in plan.ops)


def test_buffers_are_linked_to_the_op_of_the_plan_that_wrote_them(tmp_path: Path) -> None:
    text = gzip.decompress((SAMPLES / "read_back_fails" / "input.log.gz").read_bytes()).decode()
    sound = tmp_path / "serve.log"  # two executions, before the one that fails
    sound.write_text(text.rpartition("[  aoti_model_inputs - arg0_1")[0], encoding="utf-8")
    plan = whole_plan(sound)
    links = [(op, one.tensor) for op in plan.ops for one in op.arguments if one.tensor]
    linked = [(op, one) for op, one in links if one.from_op is not None]
    assert linked
    assert {op.step for op, _ in linked} == {0, 1}
    for op, one in linked:
        assert one.from_op is not None
        source = plan.ops[one.from_op]
        assert source.number < op.number
        assert source.step == op.step
        assert source.outputs[one.from_output].shape == one.shape


def test_an_extern_call_with_all_its_arguments_is_the_op_itself() -> None:
    buffers = [given("buf1", (4, 8), written=True), given("buf0", (4, 2)), given("arg1_1", (2, 8))]
    found = find_call("aoti_torch_cuda_mm_out", buffers)
    assert found is not None
    assert (found.call, found.overload, found.stand_in, found.why_not) == ("aten::mm", "default", None, None)
    assert [(one.name, one.tensor.shape) for one in found.arguments if one.tensor] == [
        ("self", (4, 2)),
        ("mat2", (2, 8)),
    ]


def test_an_extern_call_with_arguments_that_were_not_printed_says_which_were() -> None:
    found = find_call("aoti_torch_cuda_addmm_out", [given("buf1", (4, 8), written=True)])
    assert found is not None
    assert found.why_not is not None
    assert "buf1" in found.why_not


def test_a_single_elementwise_op_is_called_by_its_name() -> None:
    found = find_call("cpp_fused_gelu_view_1", [given("buf2", (4, 8), written=True)])
    assert found is not None
    assert (found.call, found.why_not) == ("aten::gelu", None)
    assert found.stand_in is not None


@pytest.mark.parametrize("kernel", ["triton_poi_fused_add_gelu_1", "triton_per_fused__softmax_3"])
def test_a_fused_kernel_cannot_run_by_itself(kernel: str) -> None:
    found = find_call(kernel, [given("buf2", (4, 8)), given("arg1_1", (4, 8))])
    assert found is not None
    assert found.why_not is not None
    assert found.arguments == ()


def test_a_hand_written_kernel_is_nobodys_call() -> None:
    assert find_call("moe_align_block_kernel", [given("buf2", (4, 8))]) is None
