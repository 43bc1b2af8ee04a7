"""Which op encloses which."""

from __future__ import annotations

from analyzer.timeline.match import mark_runs, match_completions
from analyzer.timeline.nesting import nest
from tests.oplog import block, column, complete, launch, loaded, pair, timeline


def nesting(lines: list[str]) -> list[tuple[object, object, object]]:
    """(id, parent, depth) of each launch."""
    found = timeline(lines)
    return list(zip(column(found, "id"), column(found, "parent"), column(found, "depth"), strict=True))


def test_graph_op_library_op_and_vendor_call_nest_three_deep() -> None:
    """The form of a matmul in a real log, with text between the records (observed.md 5, 6)."""
    lines = [
        *block("LAUNCH", "Epilogue(matmul, silu, operandIndices=[0])", 0),
        launch("matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0])", 1),
        "INFO::: MxNxK: 64x64x64",
        *pair("CUBLAS_matmul", 2),
        *pair("elementwise(elementwise)", 3),
        complete("matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0])", 1),
        *block("COMPLETE", "Epilogue(matmul, silu, operandIndices=[0])", 0),
        *pair("softmax", 4),
    ]
    assert nesting(lines) == [(0, None, 0), (1, 0, 1), (2, 1, 2), (3, 1, 2), (4, None, 0)]


def test_overlap_is_not_nesting() -> None:
    """The second op outlives the first: another thread, no child."""
    lines = [launch("a", 0), launch("b", 1), complete("a", 0), complete("b", 1)]
    assert nesting(lines) == [(0, None, 0), (1, None, 0)]


def test_next_op_of_the_same_level_is_a_sibling() -> None:
    lines = [launch("outer", 0), *pair("a", 1), *pair("b", 2), complete("outer", 0)]
    assert nesting(lines) == [(0, None, 0), (1, 0, 1), (2, 0, 1)]


def test_op_without_completion_encloses_nothing() -> None:
    """Where it ends is unknown; a lost line must not swallow the rest of the log."""
    lines = [launch("lost", 0), *pair("a", 1), *pair("b", 2)]
    assert nesting(lines) == [(0, None, 0), (1, None, 0), (2, None, 0)]


def test_inner_op_without_completion_keeps_its_place() -> None:
    """It stands between launch and completion of the outer op, and the next op is not put below it."""
    lines = [launch("outer", 0), launch("lost", 1), *pair("b", 2), complete("outer", 0), *pair("c", 3)]
    assert nesting(lines) == [(0, None, 0), (1, 0, 1), (2, 0, 1), (3, None, 0)]


def test_processes_do_not_enclose_one_another() -> None:
    lines = ["[rank0]: " + launch("a", 0), *(f"[rank1]: {line}" for line in pair("x", 0))]
    assert nesting([*lines, "[rank0]: " + complete("a", 0)]) == [(0, None, 0), (0, None, 0)]


def test_rows_keep_their_order() -> None:
    """Groups are nested one by one; what comes back is in launch order again."""
    with loaded([f"[rank{n}]: {line}" for line in pair("a", 0) + pair("b", 1) for n in (1, 0)]) as one:
        before, _ = match_completions(mark_runs(one.ops))
    assert nest(before)["launch_line"].to_list() == before["launch_line"].to_list() == [1, 2, 5, 6]


def test_runs_do_not_enclose_one_another() -> None:
    """An op that was open when the server died is not the parent of the next run's ops."""
    lines = [*pair("a", 0), launch("open", 1), *pair("a", 0), *pair("b", 1)]
    assert [parent for _, parent, _ in nesting(lines)] == [None] * 4
