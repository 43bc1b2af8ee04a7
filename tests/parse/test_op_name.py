"""Names of op records (excerpts of shared/corpus/max/*.log, MAX 26.7, and hand-written cases)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.grammar import GrammarError
from analyzer.model import OpExpr
from analyzer.parse.op_name import canonical, parse_op_name, to_text

# Every distinct name of the corpus.
CORPUS = """\
CUBLAS_matmul
Epilogue(Prologue(mul, reduce.mean, operandIndices=[0]), View(static.broadcast_to, Elementwise(add, rsqrt)), operandIndices=[0])
Epilogue(Prologue(static.reshape, reduce.mean, operandIndices=[0]), View(static.broadcast_to, Elementwise(add, rsqrt)), operandIndices=[0])
Epilogue(matmul, View(static.broadcast_to, Elementwise(gelu, mul, add)), operandIndices=[0])
Epilogue(matmul, View(static.broadcast_to, static.broadcast_to, Elementwise(gelu, mul, add, sub, sqrt)), operandIndices=[0])
Epilogue(matmul, View(static.reshape, add), operandIndices=[0])
Epilogue(matmul, add, operandIndices=[0])
Epilogue(matmul, silu, operandIndices=[0])
Prologue(View(static.broadcast_to, Elementwise(gelu, mul, add)), reduce.softmax, operandIndices=[0])
Prologue(add, reduce.softmax, operandIndices=[0])
View(static.broadcast_to, static.broadcast_to, Elementwise(mul, mul))
View(static.broadcast_to, static.broadcast_to, static.reshape, Elementwise(mul, mul))
custom__nan_check_count
custom__nan_check_raise
custom__paged_lookup
custom__raising_op
custom__strided_gather
elementwise(elementwise)
elementwise(mogg.foreach)
matmul
matmulEpilogue(mo.matmul, View(mo.static.broadcast_to, Elementwise(mo.gelu, mo.mul, mo.add)), operandIndices=[0])
matmulEpilogue(mo.matmul, View(mo.static.broadcast_to, mo.static.broadcast_to, Elementwise(mo.gelu, mo.mul, mo.add, mo.sub, mo.sqrt)), operandIndices=[0])
matmulEpilogue(mo.matmul, View(mo.static.reshape, mo.add), operandIndices=[0])
matmulEpilogue(mo.matmul, mo.add, operandIndices=[0])
matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0])
matmulmo.matmul
mul
""".splitlines()  # noqa: E501 - names as printed


@pytest.mark.parametrize("text", CORPUS)
def test_a_name_of_the_corpus_is_read_and_written_back(text: str) -> None:
    assert to_text(parse_op_name(text)) == text


def test_a_name_is_an_expression() -> None:
    assert parse_op_name("Epilogue(Prologue(mul, reduce.mean, operandIndices=[0]), rsqrt)") == OpExpr(
        name="Epilogue",
        args=(
            OpExpr(
                name="Prologue",
                args=(OpExpr(name="mul"), OpExpr(name="reduce.mean")),
                attributes=(("operandIndices", "[0]"),),
            ),
            OpExpr(name="rsqrt"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("matmulEpilogue(mo.matmul, mo.silu)", "matmul", "Epilogue"),
        ("matmulmo.matmul", "matmul", "mo.matmul"),
        ("reducePrologue(mo.add, mo.reduce.max)", "reduce", "Prologue"),
        ("elementwisemogg.foreach", "elementwise", "mogg.foreach"),
        ("matmulrmo.matmul", "matmul", "rmo.matmul"),
        ("gathermo.gather", "gather", "mo.gather"),
        ("CUBLAS_matmulmo.matmul", "CUBLAS_matmul", "mo.matmul"),
    ],
)
def test_a_glued_kind_is_cut_at_a_structure_word_or_dialect(text: str, kind: str, name: str) -> None:
    expr = parse_op_name(text)
    assert (expr.kind, expr.name) == (kind, name)
    assert to_text(expr) == text


@pytest.mark.parametrize(
    "text",
    [
        "mo.matmul",
        "rmo.matmul",
        "mogg.foreach",
        "mgp.tensor.create",
        "elementwise",
        "Epilogue",
        "custom__demo.step",
        "custom__myView(a)",
        "dynamo.graph",
        "torch_dynamo.graph",
        "PagedView(a)",
        "lib.demo.step",
    ],
)
def test_a_word_that_only_looks_glued_has_no_kind(text: str) -> None:
    assert parse_op_name(text).kind is None


@pytest.mark.parametrize(
    "text",
    [
        "rms_norm",
        "aten::index_select",
        "at::native::copy<float, 4, std::array<char *, 2> >::run",
        "flash-attention/fwd$v3@sm90",
        "gather[i]",
        "gather[i[0]].x",
        "map.iter.opaque %6",
        "%6",
        "op#2",
        "größe",
    ],
)
def test_other_names_are_one_leaf(text: str) -> None:
    assert parse_op_name(text) == OpExpr(name=text)


def test_attribute_values_are_kept_as_text() -> None:
    expr = parse_op_name('f(a, axis=-1, map={a = "x, (y)", b = [1, 2]}, layout=#mo.layout<KN>, on=true)')
    assert expr.args == (OpExpr(name="a"),)
    assert expr.attributes == (
        ("axis", "-1"),
        ("map", '{a = "x, (y)", b = [1, 2]}'),
        ("layout", "#mo.layout<KN>"),
        ("on", "true"),
    )


def test_blanks_around_the_name_and_empty_arguments_are_dropped() -> None:
    assert parse_op_name("  matmul ") == parse_op_name("matmul()") == OpExpr(name="matmul")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Epilogue(",
        "Epilogue(matmul",
        "Epilogue(matmul,",
        "Epilogue(matmul,)",
        "Epilogue(matmul))",
        "(matmul)",
        "matmul)",
        "a<b",
        "a[0",
        "f(x=)",
        "f(x=[0)",
        "matmul silu",
        "Epilogue(matmul, si[OP] LAUNCH mul",
        "[OP]",
        "...",
        "a\nb",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_op_name(text)


def test_canonical_form_joins_inner_and_outer_records() -> None:
    """The vendor prints one op three ways: outer record, inner record, fusion tree."""
    inner = parse_op_name("matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0, 1])")
    outer = parse_op_name("Epilogue(matmul, silu, operandIndices=[0,1])")
    assert canonical(inner) == canonical(outer) == "Epilogue(matmul, silu, operandIndices=[0,1])"
    assert canonical(parse_op_name("elementwise(mogg.foreach)")) == "elementwise(foreach)"


def test_leaves_are_the_ops_inside() -> None:
    expr = parse_op_name("Epilogue(matmul, View(static.broadcast_to, Elementwise(gelu, mul)))")
    assert list(expr.leaves()) == ["matmul", "static.broadcast_to", "gelu", "mul"]


LEAVES = st.sampled_from(
    ["mul", "mo.add", "reduce.mean", "custom__x", "aten::mm", "k<int, 2>", "a[i]", "map %6", "x-1/2$@"]
)
VALUES = st.sampled_from(["[0]", "[0, 1]", "true", "-1", '"a, b)"', "{k = (1)}", "#mo.layout<KN>"])
ATTRIBUTES = st.lists(st.tuples(st.sampled_from(["operandIndices", "axis", "a.b"]), VALUES), max_size=2)


def _structures(inner: st.SearchStrategy[OpExpr]) -> st.SearchStrategy[OpExpr]:
    return st.builds(
        lambda name, args, attributes, kind: OpExpr(
            name=name, args=tuple(args), attributes=tuple(attributes), kind=kind
        ),
        st.sampled_from(["Epilogue", "Prologue", "View", "Elementwise", "Sequence"]),
        st.lists(inner, min_size=1, max_size=4),
        ATTRIBUTES,
        st.sampled_from([None, None, "matmul", "conv_2d"]),
    )


@given(st.recursive(LEAVES.map(lambda name: OpExpr(name=name)), _structures, max_leaves=12))
def test_any_expression_survives_writing_and_reading(expr: OpExpr) -> None:
    assert parse_op_name(to_text(expr)) == expr


@given(st.text(alphabet='mo.aE(pilogue)<>[]=, %"1', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other exception escapes, and what is read is stable under writing and reading."""
    try:
        expr = parse_op_name(text)
    except GrammarError:
        return
    assert parse_op_name(to_text(expr)) == expr
