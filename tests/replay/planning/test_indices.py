"""Which argument indexes what."""

from __future__ import annotations

import pytest

from analyzer.replay.planning.indices import Operands, find_extents

_INT = "int64"


def operands(
    shapes: dict[str, tuple[int, ...]], texts: dict[str, str], *ints: str, mask: str = ""
) -> Operands:
    dtypes = {name: _INT if name in ints else "float32" for name in shapes}
    if mask:
        dtypes[mask] = "bool"
    return Operands(shapes=shapes, dtypes=dtypes, texts=texts)


@pytest.mark.parametrize(
    ("call", "given", "extents"),
    [
        (
            "aten::index_select",
            operands({"self": (4, 9), "index": (3,)}, {"dim": "1"}, "index"),
            {"index": 9},
        ),
        ("aten::gather", operands({"self": (4, 9), "index": (4, 2)}, {"dim": "-2"}, "index"), {"index": 4}),
        ("aten::scatter_add_", operands({"self": (7,), "index": (2,)}, {"dim": "0"}, "index"), {"index": 7}),
        ("aten::gather", operands({"self": (), "index": ()}, {"dim": "0"}, "index"), {"index": 1}),
        ("aten::gather", operands({"self": (4,), "index": (4,)}, {"dim": "3"}, "index"), {}),
        ("aten::gather", operands({"self": (4,), "index": (4,)}, {}, "index"), {}),
        (
            "aten::embedding",
            operands({"weight": (50, 8), "indices": (2, 3)}, {}, "indices"),
            {"indices": 50},
        ),
        (
            "aten::_embedding_bag",
            operands({"weight": (50, 8), "indices": (6,), "offsets": (2,)}, {}, "indices", "offsets"),
            {"indices": 50, "offsets": 1},
        ),
        ("aten::take", operands({"self": (4, 9), "index": (3,)}, {}, "index"), {"index": 36}),
        (
            "aten::take_along_dim",
            operands({"self": (4, 9), "indices": (4, 1)}, {"dim": "1"}, "indices"),
            {"indices": 9},
        ),
        (
            "aten::take_along_dim",
            operands({"self": (4, 9), "indices": (4,)}, {}, "indices"),
            {"indices": 36},
        ),
        ("aten::one_hot", operands({"self": (5,)}, {"num_classes": "12"}, "self"), {"self": 12}),
        ("aten::one_hot", operands({"self": (5,)}, {"num_classes": "-1"}, "self"), {}),
        (
            "aten::nll_loss_forward",
            operands({"self": (4, 10), "target": (4,)}, {}, "target"),
            {"target": 10},
        ),
        ("aten::nll_loss_nd", operands({"self": (10,), "target": ()}, {}, "target"), {"target": 10}),
        (
            "aten::max_unpool2d",
            operands({"self": (1, 2, 2), "indices": (1, 2, 2)}, {"output_size": "4,5"}, "indices"),
            {"indices": 20},
        ),
        (
            "aten::_ctc_loss",
            operands({"log_probs": (5, 2, 4), "targets": (2, 2)}, {}, "targets"),
            {"targets": 4},
        ),
        ("aten::add", operands({"self": (4,), "other": (4,)}, {}, "other"), {}),
        ("vllm::paged_attention", operands({"self": (4,), "block_tables": (4,)}, {}, "block_tables"), {}),
    ],
)
def test_an_index_obeys_the_dimension_it_indexes(call: str, given: Operands, extents: dict[str, int]) -> None:
    assert find_extents(call, given) == extents


@pytest.mark.parametrize(
    "call", ["aten::index", "aten::index_put_", "aten::_unsafe_index", "aten::_index_put_impl_"]
)
def test_each_place_of_a_list_indexes_its_own_dimension(call: str) -> None:
    given = operands(
        {"self": (2, 3, 4, 5), "indices.1": (6,), "indices.3": (6,)}, {}, "indices.1", "indices.3"
    )
    assert find_extents(call, given) == {"indices.1": 3, "indices.3": 5}


def test_a_mask_takes_as_many_dimensions_as_it_has() -> None:
    shapes: dict[str, tuple[int, ...]] = {"self": (2, 3, 4), "indices.0": (2, 3), "indices.1": (6,)}
    given = operands(shapes, {}, "indices.1", mask="indices.0")
    assert find_extents("aten::index", given) == {"indices.1": 4}
