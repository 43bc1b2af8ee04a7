"""Which op of the timeline a fault text talks about."""

from __future__ import annotations

import polars as pl

from analyzer.grammar import GrammarError
from analyzer.model import FusionNode
from analyzer.parse.fusion_tree import to_expr
from analyzer.parse.op_name import canonical, parse_op_name

_HASH = r"(?:_[0-9a-f]{16})?(?:_[0-9]+)?$"  # kernel symbols end in a hash of the fusion or an instance count


def canonical_names(names: pl.Series) -> dict[str, str]:
    """Each distinct op name with its canonical expression; a name that does not parse stands for itself."""
    result = {}
    for name in names.unique().cast(pl.String).drop_nulls().to_list():
        try:
            result[name] = canonical(parse_op_name(name))
        except GrammarError:
            result[name] = name
    return result


def names_of_kernel(*, kernel: str | None, fusion: FusionNode | None, known: dict[str, str]) -> list[str]:
    """Op names that a kernel of an error text can stand for.

    The fusion tree is the op's expression and decides if it is there; else the kernel symbol is compared
    with the joined names of the op's leaves (observed.md 11).

    Args:
        kernel: Symbol such as ``__custom__strided_gather_1``.
        fusion: The tree after ``Fusion info:``.
        known: Distinct op names with their ``canonical_names``.
    """
    if fusion is not None:
        wanted = canonical(to_expr(fusion))
        found = [name for name, text in known.items() if text == wanted]
        if found:
            return found
    if not kernel:
        return []
    symbol = pl.Series([kernel]).str.strip_prefix("__").str.replace(_HASH, "")[0]
    symbols = {name: symbol_of(name) for name in known}
    exact = [name for name, own in symbols.items() if own == symbol]
    # long fusions are cut after a few leaves: __static_broadcast_to_gelu_mul_add_<hash>
    return exact or [name for name, own in symbols.items() if own.startswith(f"{symbol}_")]


def symbol_of(name: str) -> str:
    """The kernel symbol that the compiler makes of an op name: leaves joined, dots as underscores."""
    try:
        leaves = [leaf.removeprefix("mo.") for leaf in parse_op_name(name).leaves()]
    except GrammarError:
        return name
    return "_".join(leaves).replace(".", "_")


def last_launch(timeline: pl.DataFrame, names: list[str], before_line: int) -> dict[str, object] | None:
    """The last launch of one of ``names`` at or before a line, as a row of ``TIMELINE``, or null."""
    found = timeline.filter(
        pl.col("name").cast(pl.String).is_in(names) & (pl.col("launch_line") <= before_line)
    ).tail(1)
    return found.row(0, named=True) if found.height else None
