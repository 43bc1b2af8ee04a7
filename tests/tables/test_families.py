"""What kind of work an op does, told from its name."""

from __future__ import annotations

import pytest

from analyzer.tables.families import families, leaf_families


@pytest.mark.parametrize(
    ("leaf", "family"),
    [
        ("mo.gather", "index"),
        ("scatter_nd", "index"),
        ("matmul", "matmul"),
        ("CUBLAS_matmul", "matmul"),
        ("mo.reduce.softmax", "softmax"),
        ("reduce.mean", "reduction"),
        ("rsqrt", "nan_domain"),
        ("mo.div", "nan_domain"),
        ("gelu", "elementwise"),
        ("static.broadcast_to", "layout"),
        ("rms_norm", "norm"),
        ("flash_attention_gpu", "attention"),
        ("kv_cache_store", "paged_kv"),
        ("topk", "sampling"),
        ("aten::embedding", "embedding"),
        ("distributed.allreduce.sum", "collective"),
        ("moe_router", "moe"),
        ("dequantize_fp8", "quantization"),
        ("never_heard_of", "unknown"),
    ],
)
def test_leaf_has_the_family_of_its_telling_word(leaf: str, family: str) -> None:
    assert leaf_families(leaf) == (family,)


def test_words_are_whole_words() -> None:
    """``add`` does not hide in ``padding``, nor ``log`` in ``logits``."""
    assert leaf_families("padding") == ("unknown",)
    assert leaf_families("logits") == ("unknown",)


@pytest.mark.parametrize(
    ("leaf", "found"),
    [
        ("custom__paged_lookup", ("custom", "paged_kv")),
        ("custom__strided_gather", ("custom", "index")),
        ("custom__my_op", ("custom",)),
    ],
)
def test_custom_op_is_custom_and_what_its_name_says(leaf: str, found: tuple[str, ...]) -> None:
    assert leaf_families(leaf) == found


def test_families_of_a_fused_op_are_those_of_its_leaves_once_each() -> None:
    assert families(["mul", "gelu", "reduce.softmax", "mul"]) == ("elementwise", "softmax")
