"""The ir-output-dir file (cut from shared/corpus/max/paged_decoder.mojo, MAX 26.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.grammar import GrammarError
from analyzer.parse.fusion_tree import to_expr
from analyzer.parse.ir_file import IrArgument, IrModule, parse_ir
from analyzer.parse.mojo_expr import Bind, parse_statement
from analyzer.parse.op_detail import parse_op_detail
from analyzer.parse.op_name import canonical, parse_op_name
from analyzer.schema import TensorInfo

P = "builtin_primitives.primitives"
REF = "max.runtime.async_value.AnyAsyncValueRef"
INIT = f"{P}.mogg_tensor_init"
TRACE = 'max.runtime.tracing.Trace[max.runtime.tracing.TraceLevel.OP, target = StaticString("gpu")]'
TASK = "task_id = max.runtime.tracing.get_safe_task_id(arg__3)"
IR = rf"""import std.utils
import mojo_pkg_5af0abf52ac370383650e9b2f4f2141f
import layout as layout
import mojo_pkg_5af0abf52ac370383650e9b2f4f2141f.badops

# FusionInfo:
#   Sequence
#       ├── mo.mul : (!mo.tensor<[8192], f32, gpu:0>, !mo.tensor<[8192], f32, gpu:0>) -> !mo.tensor<[8192], f32, gpu:0>
#       └── custom__paged_lookup : (!mo.tensor<[8192], f32, gpu:0>) -> !mo.tensor<[8192], f32, gpu:0>

@export
def __mul_paged_async(arg__0: Pointer[OpaquePointer[MutAnyOrigin], MutAnyOrigin]) abi("Mojo"):
    # This is the entry point of the kernel. The argument is a pointer to a list of inputs and outputs.
    var var__1 = {REF}(take_slot=arg__0[unsafe_offset=0])
    var var__2 = {REF}(take_slot=arg__0[unsafe_offset=1])
    var var__3 = {REF}(take_slot=arg__0[unsafe_offset=12])
    var var__9 = {REF}()
    try:
        var var___0 = {P}.unpack_buffer_ref(var__1)
        var var___1 = {P}.unpack_device_ctx(var__2)
        var var___2 = {P}.mogg_async_unpack[Int](var__3)
        var var___7: std.collections.Array[Int, 2]
        var___7 = [var___2, var___2]
        var var___8 = {P}.mgp_buffer_bulk_slice(var___0, var___7, var___7, var___1)
        var var___10 = var___8[0]
        var var___11 = var___8[1]
        var var___36 = {P}.unpack_tensor[1, 1, DType.int64](var__3)
        var var___37 = {P}.mgp_tensor_extract_buffer(var___36)
        var var___38 = var___37.unsafe_ptr().unsafe_bitcast[NoneType]()
        var var___26 = var___10.unsafe_ptr().unsafe_bitcast[NoneType]()
        var var___35 = var___11.unsafe_ptr().unsafe_bitcast[NoneType]()

        __mul(var___26, var___35, var___1)

        __custom__paged_lookup(var___35, var___38, var___26, var___1)

        var var___18 = {P}.mogg_async_pack_value(var___11^)
        var__9 = var___18

    except e__11:
        var var___0 = {P}.mogg_format_region_error("__mul_paged_async", e__11)
        __mul(var___0, var___0, var___0)

    _ = var__1

# FusionInfo:
#   custom__paged_lookup : (!mo.tensor<[8192], f32, gpu:0>, !mo.tensor<[8192], si64, gpu:0>) -> !mo.tensor<[8192], f32, gpu:0>

def __custom__paged_lookup(arg__0: OpaquePointer[MutAnyOrigin], arg__1: OpaquePointer[MutAnyOrigin], arg__2: OpaquePointer[MutAnyOrigin], arg__3: max.gpu.host.device_context.DeviceContext) raises:
    try:
        var var___0 = layout.Coord(layout.Idx[64], layout.Idx[128])
        var var___1 = layout.row_major(var___0)
        var var___2 = {INIT}[DType.float32, 2, False, extensibility.IO.Input, 256](arg__0.unsafe_bitcast[NoneType](), var___1)
        var var___3 = {INIT}[DType.int64, 1, False, extensibility.IO.Input, 256](arg__1.unsafe_bitcast[NoneType](), var___99)
        var var___4 = {INIT}[DType.float32, 2, True, extensibility.IO.Output, 256](arg__2.unsafe_bitcast[NoneType](), var___1)
        with {TRACE}("custom__paged_lookup", "\nsrv/app/max_steps.py:53:<module>\nsrv/app/max_steps.py:30:build\ngraph/ops/custom.py:109:custom\n", {TASK}):
            mojo_pkg_5af0abf52ac370383650e9b2f4f2141f.badops.PagedLookup.execute[target = "gpu"](var___4, var___2, var___3, arg__3)


    except e__4:
        raise var___0^


# FusionInfo:
#   mo.mul : (!mo.tensor<[8192], f32, gpu:0>, !mo.tensor<[8192], f32, gpu:0>) -> !mo.tensor<[8192], f32, gpu:0>

def __mul(arg__0: OpaquePointer[MutAnyOrigin], arg__1: OpaquePointer[MutAnyOrigin], arg__2: max.gpu.host.device_context.DeviceContext) raises:
    try:
        var var___0 = layout.Coord(layout.Idx[8192])
        var var___1 = layout.row_major(var___0)
        var var___2 = {INIT}[DType.float32, 1, False, extensibility.IO.Input, 256](arg__0.unsafe_bitcast[NoneType](), var___1)
        var var___3 = {INIT}[DType.float32, 1, True, extensibility.IO.Output, 256](arg__1.unsafe_bitcast[NoneType](), var___1)
        with {TRACE}("mul", "\nsrv/app/max_steps.py:53:<module>\ngraph/ops/elementwise.py:65:elementwise_op\n[fused from 1 ops]", {TASK}):
            var var____0 = var___2.unsafe_ptr()
            def lambda_____8[width : Int, element_alignment : Int = 1](idx: layout.Coord) {{var}}:
                var var_____1 = {P}.Mul.elementwise[dtype = DType.float32](var____0, var____0)


@fieldwise_init
struct PrologueLoadFunctor_0[spec__0: _](managed_tensor_slice.InputFusion):
    var var__1: Pointer[Scalar[DType.float32], MutAnyOrigin]
"""  # noqa: E501 - lines as written by the graph compiler


@pytest.fixture(scope="module")
def module() -> IrModule:
    return parse_ir(IR)


def test_packages_are_the_modules_of_custom_ops(module: IrModule) -> None:
    assert module.packages == ("mojo_pkg_5af0abf52ac370383650e9b2f4f2141f",)


def test_every_traced_kernel_is_found(module: IrModule) -> None:
    found = [(kernel.symbol, kernel.name, kernel.target) for kernel in module.kernels]
    assert found == [
        ("__custom__paged_lookup", "custom__paged_lookup", "gpu"),
        ("__mul", "mul", "gpu"),
    ]
    assert module.unread == ()


def test_the_detail_is_what_the_op_log_prints_before_the_target(module: IrModule) -> None:
    head, *body = module.kernels[0].detail.split("\n")
    detail = parse_op_detail(head, body)
    assert [frame.function for frame in detail.stacks[0]] == ["<module>", "build", "custom"]
    head, *body = module.kernels[1].detail.split("\n")
    assert parse_op_detail(head, body).fused_from == 1


def test_the_tree_of_a_kernel_joins_its_name_and_types_it(module: IrModule) -> None:
    for kernel in module.kernels:
        assert kernel.fusion is not None
        assert canonical(to_expr(kernel.fusion)) == canonical(parse_op_name(kernel.name))
    assert [(t.dtype, t.role) for t in module.kernels[0].tensors] == [
        ("f32", "input"),
        ("si64", "input"),
        ("f32", "output"),
    ]


def test_arguments_have_direction_and_shape_as_the_kernel_binds_them(module: IrModule) -> None:
    """Null extents where the layout is not shown; the device context is no tensor."""
    assert module.kernels[0].arguments == (
        IrArgument(name="arg__0", reads=True, tensor=TensorInfo(shape=[64, 128], dtype="float32")),
        IrArgument(name="arg__1", reads=True, tensor=TensorInfo(shape=[None], dtype="int64")),
        IrArgument(
            name="arg__2",
            writes=True,
            tensor=TensorInfo(shape=[64, 128], dtype="float32", role="output"),
        ),
        IrArgument(name="arg__3"),
    )


def test_calls_name_the_buffers_behind_their_pointers(module: IrModule) -> None:
    """The index input of the lookup is slot 12 of the entry, its output a piece of the pool."""
    mul, lookup = module.calls
    assert (mul.entry, mul.kernel) == ("__mul_paged_async", "__mul")
    assert (mul.reads, mul.writes) == (("var___8[0]",), ("var___8[1]",))
    assert lookup.arguments == ("var___35", "var___38", "var___26", "var___1")
    assert lookup.buffers == ("var___8[1]", "arg__0[12]", "var___8[0]", None)
    assert (lookup.reads, lookup.writes) == (("var___8[1]", "arg__0[12]"), ("var___8[0]",))
    assert IR.splitlines()[lookup.line - 1].strip().startswith("__custom__paged_lookup(")


def test_line_ends_of_windows_change_nothing(module: IrModule) -> None:
    assert parse_ir(IR.replace("\n", "\r\n")) == module


def test_a_line_that_should_say_something_is_counted_when_unread(module: IrModule) -> None:
    broken = IR.replace(
        "        __mul(var___26, var___35, var___1)", "        __mul(var___26, var___35 var___1)"
    )
    result = parse_ir(broken)
    assert result.unread == (module.calls[0].line,)
    assert [call.kernel for call in result.calls] == ["__custom__paged_lookup"]


def test_a_broken_tree_leaves_the_kernel_without_types() -> None:
    result = parse_ir(IR.replace("#   mo.mul : (", "#   mo.mul : (("))
    kernel = result.kernels[1]
    assert (kernel.name, kernel.fusion, kernel.tensors) == ("mul", None, ())
    assert result.unread == (kernel.line,)


@pytest.mark.parametrize("cut", range(0, len(IR.splitlines()), 3))
def test_a_cut_file_gives_a_prefix_of_the_kernels(cut: int, module: IrModule) -> None:
    text = "\n".join(IR.splitlines()[:cut])
    if "mojo_pkg" not in text:
        with pytest.raises(GrammarError):
            parse_ir(text)
        return
    symbols = tuple(kernel.symbol for kernel in parse_ir(text).kernels)
    assert symbols == tuple(kernel.symbol for kernel in module.kernels)[: len(symbols)]


@pytest.mark.parametrize("text", ["", "hello\n", "module {\n}\n", "def f():\n    pass\n"])
def test_another_kind_of_file_is_refused(text: str) -> None:
    with pytest.raises(GrammarError, match="a traced kernel"):
        parse_ir(text)


def test_escapes_of_strings_are_those_of_python() -> None:
    statement = parse_statement(r'var a = "x\n\"y\" \\ ├──"')
    assert isinstance(statement, Bind)
    assert statement.expr is not None
    assert statement.expr.string() == 'x\n"y" \\ ├──'
    broken = parse_statement(r'var a = "\x"')
    assert isinstance(broken, Bind)
    assert broken.expr is not None
    assert broken.expr.string() is None


@given(st.lists(st.sampled_from(IR.splitlines()), max_size=30))
def test_any_order_of_lines_is_read_or_refused(lines: list[str]) -> None:
    """No other exception escapes."""
    try:
        parse_ir("\n".join(lines))
    except GrammarError:
        return
