"""MLIR types and printed shapes (every distinct type of shared/corpus, and hand-written cases)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.grammar import GrammarError
from analyzer.parse.tensor_type import parse_shape_text, parse_signature, parse_type
from analyzer.schema import TensorInfo

T = TensorInfo


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!mo.tensor<[64, 64], f32, gpu:0>", T(shape=[64, 64], dtype="f32", device="gpu:0")),
        (
            "!mo.tensor<[128, 512], f32, gpu:0, {layout = #mo.layout<KN>}>",
            T(shape=[128, 512], dtype="f32", device="gpu:0"),
        ),
        ("!mo.tensor<[], f32, gpu:0>", T(shape=[], dtype="f32", device="gpu:0")),
        ("!mo.tensor<[1], si32>", T(shape=[1], dtype="si32")),
        ("!mo.tensor<[8192], si64, gpu:0>", T(shape=[8192], dtype="si64", device="gpu:0")),
        ("!mo.tensor<[?, 128], bf16, gpu:3>", T(shape=[None, 128], dtype="bf16", device="gpu:3")),
        ('!mo.tensor<["batch", 128], f8e4m3fn>', T(shape=[None, 128], dtype="f8e4m3fn")),
        ("!mo.tensor<[batch, 2 * seq + 1, 4], f32>", T(shape=[None, None, 4], dtype="f32")),
        ("!mo.tensor<[-1], f32>", T(shape=[None], dtype="f32")),
        ('!mgp.tensor<128x512xf32, <"gpu", 0>>', T(shape=[128, 512], dtype="f32", device="gpu:0")),
        ('!mgp.tensor<8192xsi64, <"gpu", 1>>', T(shape=[8192], dtype="si64", device="gpu:1")),
        ('!mgp.tensor<f32, <"cpu", 0>>', T(shape=[], dtype="f32", device="cpu:0")),
        ("!mgp.tensor_spec<64x128xf32>", T(shape=[64, 128], dtype="f32")),
        ("tensor<4x?xf32>", T(shape=[4, None], dtype="f32")),
        ("memref<4x8xf32, strided<[8, 1], offset: ?>, 1>", T(shape=[4, 8], dtype="f32")),
    ],
)
def test_a_tensor_has_shape_dtype_and_device(text: str, expected: TensorInfo) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "!mo.chain",
        "!mef.chain",
        "index",
        "si64",
        "f32",
        '!mgp.buffer<<"gpu", 0>>',
        '!mgp.device_context<<"gpu", 0>>',
        "!mo.list<!mo.tensor<[?], f32>>",
        '!mo.opaque<"PagedKVCache", {pages = 3 : si32}>',
        "!kgen.pointer<struct<(scalar<f32>, array<4, i8>) memoryOnly>>",
        "!kgen.generator<(index) -> index>",
        "!mo.tensor<?, f32>",
        "tensor<*xf32>",
        "tensor<4xcomplex<f32>>",
        "!mo.tensor",
    ],
)
def test_other_types_are_read_but_are_no_tensors(text: str) -> None:
    assert parse_type(text) is None


def test_a_signature_has_inputs_and_outputs() -> None:
    inputs, outputs = parse_signature(
        "(!mo.tensor<[64, 64], f32, gpu:0>, !mo.chain) -> (!mo.tensor<[64, 1], f32, gpu:0>, index)"
    )
    assert inputs == (T(shape=[64, 64], dtype="f32", device="gpu:0"),)
    assert outputs == (T(shape=[64, 1], dtype="f32", device="gpu:0", role="output"),)


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("() -> (index, index, index)", 0, 0),
        ("-> (!mo.tensor<[1], si32>, !mo.tensor<[2], si32>)", 0, 2),
        ("(!mo.tensor<[1], si32>, !mo.tensor<[1], si32>, !mo.chain) -> !mo.chain", 2, 0),
        ("(index) -> ()", 0, 0),
    ],
)
def test_signatures_may_lack_a_side(text: str, inputs: int, outputs: int) -> None:
    assert tuple(map(len, parse_signature(text))) == (inputs, outputs)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("1x2048x8192xbfloat16", [1, 2048, 8192], "bfloat16"),
        ("8192xfloat8_e4m3fn", [8192], "float8_e4m3fn"),
        ("1x2048x8192", [1, 2048, 8192], ""),
        ("?x3", [None, 3], ""),
        ("64", [64], ""),
        ("0x4xfloat32", [0, 4], "float32"),
        ("float32", [], "float32"),
    ],
)
def test_a_printed_shape(text: str, shape: list[int | None], dtype: str) -> None:
    assert parse_shape_text(text) == T(shape=shape, dtype=dtype)


@pytest.mark.parametrize(
    "text", ["", "!mo.tensor<", "!mo.tensor<[64, f32>", "!mo.tensor<[64], f32>>", "f32 f32", "<>", "[64]"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_type(text)


@pytest.mark.parametrize("text", ["", "1x", "1x?x", "4.5", "-1x4", f"{'9' * 5000}x4", "a b"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_shape_text(text)


@pytest.mark.parametrize("text", ["", "->", "(f32", "(f32)", "(f32,) -> f32", "(f32) -> "])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_signature(text)


EXTENTS = st.one_of(st.none(), st.integers(0, 2**62))
DTYPES = st.sampled_from(["f32", "bf16", "si64", "ui8", "f8e4m3fn", "bool", "bfloat16"])
DEVICES = st.one_of(st.none(), st.builds("{}:{}".format, st.sampled_from(["gpu", "cpu"]), st.integers(0, 15)))
TENSORS = st.builds(
    lambda shape, dtype, device: T(shape=shape, dtype=dtype, device=device),
    st.lists(EXTENTS, max_size=5),
    DTYPES,
    DEVICES,
)


def _mo_text(tensor: TensorInfo) -> str:
    dims = ", ".join("?" if extent is None else str(extent) for extent in tensor.shape)
    device = "" if tensor.device is None else f", {tensor.device}"
    return f"!mo.tensor<[{dims}], {tensor.dtype}{device}>"


def _mgp_text(tensor: TensorInfo) -> str:
    dims = "".join(f"{'?' if extent is None else extent}x" for extent in tensor.shape)
    kind, _, ordinal = (tensor.device or "").partition(":")
    return f"!mgp.tensor<{dims}{tensor.dtype}" + (f', <"{kind}", {ordinal}>>' if kind else ">")


@given(TENSORS)
def test_any_tensor_survives_both_spellings(tensor: TensorInfo) -> None:
    assert parse_type(_mo_text(tensor)) == parse_type(_mgp_text(tensor)) == tensor


@given(st.lists(TENSORS, max_size=4), st.lists(TENSORS, max_size=3))
def test_any_signature_survives(inputs: list[TensorInfo], outputs: list[TensorInfo]) -> None:
    text = f"({', '.join(map(_mo_text, inputs))}) -> ({', '.join(map(_mgp_text, outputs))})"
    read_inputs, read_outputs = parse_signature(text)
    assert list(read_inputs) == inputs
    assert [(t.shape, t.dtype, t.device) for t in read_outputs] == [
        (t.shape, t.dtype, t.device) for t in outputs
    ]


@given(st.text(alphabet='!mo.tensr<[]>,? 12xf32:"->(){}#', max_size=40))
def test_any_text_is_a_type_or_refused(text: str) -> None:
    """No other exception escapes."""
    for parse in (parse_type, parse_signature, parse_shape_text):
        try:
            parse(text)
        except GrammarError:
            continue
