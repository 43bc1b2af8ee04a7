"""Launches and completions of the same op are joined by process, run and id."""

from __future__ import annotations

import pytest

from tests.oplog import column, complete, launch, pair, steps, timeline


def matches(lines: list[str]) -> list[tuple[object, object, object]]:
    """(name, launch line, completion line) of each launch."""
    found = timeline(lines)
    return list(
        zip(
            column(found, "name"),
            column(found, "launch_line"),
            column(found, "completion_line"),
            strict=True,
        )
    )


def test_overlapping_threads_are_matched_by_id_not_by_adjacency() -> None:
    """CPU threads interleave: the completion behind a launch can be another op's (observed.md 5)."""
    lines = [launch("add", 4), launch("mul", 5), complete("add", 4), launch("exp", 6), complete("exp", 6)]
    assert matches([*lines, complete("mul", 5)]) == [("add", 1, 3), ("mul", 2, 6), ("exp", 4, 5)]


def test_ids_that_start_again_are_another_run() -> None:
    """A restarted server counts from 0 again; its completions belong to its own launches (observed.md 9)."""
    found = timeline([launch("a", 0), complete("a", 0), launch("b", 1), *pair("a", 0), *pair("b", 1)])
    assert column(found, "run") == [0, 0, 1, 1]
    assert column(found, "completion_line") == [2, None, 5, 7]
    assert not found.untagged_writers


def test_restart_after_a_cut_in_the_first_lines_is_another_run() -> None:
    """A far drop of the id is a restart even where the line with id 0 is lost."""
    found = timeline([*pair("a", 9000), *pair("a", 3), *pair("b", 4)])
    assert column(found, "run") == [0, 1, 1]


def test_id_zero_may_print_behind_id_one() -> None:
    """The first threads of a process print in any order; that is no restart."""
    found = timeline([launch("b", 1), launch("a", 0), complete("b", 1), complete("a", 0), *pair("c", 2)])
    assert column(found, "run") == [0, 0, 0]
    assert column(found, "completion_line") == [3, 4, 6]


def test_ids_out_of_order_stay_one_run_and_one_writer() -> None:
    """Threads take their ids in launch order but may print a few lines later."""
    found = timeline([launch("a", 0), *pair("c", 2), *pair("b", 1), complete("a", 0), *pair("d", 3)])
    assert column(found, "id") == [0, 2, 1, 3]
    assert set(column(found, "run")) == {0}
    assert not found.untagged_writers


def test_launch_printed_twice_gives_the_completion_to_the_first() -> None:
    """A repeated launch line is not merged away: one of the two has no completion in the log."""
    found = timeline([*pair("z", 6), launch("a", 7), launch("a", 7), complete("a", 7)])
    assert column(found, "launch_line") == [1, 3, 4]
    assert column(found, "completion_line") == [2, 5, None]
    assert found.untagged_writers


def test_completion_without_launch_is_counted_and_not_invented() -> None:
    """A log that starts in the middle has completions of launches that it does not hold."""
    found = timeline([complete("a", 40), *pair("b", 41)])
    assert column(found, "id") == [41]
    assert found.unmatched_completions == 1


def test_completion_printed_twice_counts_once() -> None:
    """The first completion stands; the other one is unmatched."""
    found = timeline([launch("a", 1), complete("a", 1), complete("a", 1)])
    assert column(found, "completion_line") == [2]
    assert found.unmatched_completions == 1


def test_launch_without_completion_is_kept_as_unknown() -> None:
    """Null = no completion in the log; it does not say that the op failed (observed.md 7)."""
    assert matches([launch("a", 1), *pair("b", 2)]) == [("a", 1, None), ("b", 2, 3)]


def test_lost_lines_leave_the_other_ops_alone() -> None:
    """A hole in the log (ids 3 to 5 are missing) costs only the ops in the hole."""
    lines = [*pair("a", 1), launch("b", 2), complete("e", 5), *pair("f", 6)]
    assert matches(lines) == [("a", 1, 2), ("b", 3, None), ("f", 5, 6)]


def test_process_tag_is_part_of_the_key() -> None:
    """The same ids of two processes are different ops."""
    tagged = [
        f"[rank{rank}]: {line}"
        for line in (launch("a", 0), launch("b", 1), complete("b", 1), complete("a", 0))
        for rank in (0, 1)
    ]
    found = timeline(tagged)
    assert column(found, "process") == ["rank0", "rank1"] * 2
    assert column(found, "completion_line") == [7, 8, 5, 6]
    assert not found.untagged_writers


def test_two_records_in_one_line_are_two_ops() -> None:
    """Two writers can share a line (formats.md 7.2)."""
    found = timeline([launch("a", 0) + launch("b", 1), complete("a", 0) + complete("b", 1)])
    assert column(found, "name") == ["a", "b"]
    assert column(found, "completion_line") == [2, 2]


@pytest.mark.parametrize(
    "name",
    [
        "Prologue(View(static.broadcast_to, Elementwise(gelu, mul)), reduce.softmax, operandIndices=[0])",
        "matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0])",
        "elementwise(mogg.foreach)",
        "custom__paged_lookup",
    ],
)
def test_name_is_an_expression_not_a_word(name: str) -> None:
    """Names hold spaces, commas, brackets and keyword arguments (observed.md 3)."""
    found = timeline(pair(name, 12))
    assert (column(found, "name"), column(found, "id")) == ([name], [12])


class TestUntaggedWriters:
    """Two processes that print into one stream without a tag."""

    def test_writers_are_split_into_lanes_by_the_id_that_each_prints_next(self) -> None:
        ahead, behind = pair("a", 0) + pair("b", 1) + pair("c", 2), pair("x", 0) + pair("y", 1)
        woven = [*ahead[:3], behind[0], ahead[3], behind[1], behind[2], ahead[4], behind[3], ahead[5]]
        found = timeline(woven)
        lanes: dict[object, list[object]] = {}
        for run, name in zip(column(found, "run"), column(found, "name"), strict=True):
            lanes.setdefault(run, []).append(name)
        assert sorted(lanes.values()) == [["a", "b", "c"], ["x", "y"]]
        assert found.unmatched_completions == 0
        assert None not in column(found, "completion_line")
        assert found.untagged_writers

    def test_second_writer_is_seen_though_it_never_reaches_an_id_of_the_first(self) -> None:
        """The ids of the first go on after id 0 came again; a restarted process does not do that."""
        first = steps(4, mark=None)
        found = timeline([*first[:12], *pair("x", 0), *first[12:18], *pair("y", 1), *first[18:]])
        assert found.untagged_writers
        assert [run for run, name in zip(column(found, "run"), column(found, "name"), strict=True)
                if name in {"x", "y"}] == [1, 1]  # fmt: skip

    def test_lane_goes_on_after_lost_lines(self) -> None:
        """The nearest lane below takes an id that nobody waits for."""
        lines = [*pair("a", 0), *pair("a", 1), *pair("x", 0), *pair("a", 2), *pair("x", 1), *pair("a", 9)]
        assert column(timeline(lines), "run") == [0, 0, 1, 0, 1, 0]

    def test_rows_stay_in_launch_order(self) -> None:
        found = timeline([*pair("a", 0), *pair("b", 1), launch("x", 0), *pair("c", 2), *pair("y", 1)])
        assert column(found, "launch_line") == [1, 3, 5, 6, 8]

    def test_only_the_mixed_process_is_split(self) -> None:
        """Lanes are guesses; a process that has a tag of its own needs none."""
        mixed = [*pair("a", 0), *pair("b", 1), *pair("x", 0), *pair("c", 2), *pair("y", 1), *pair("z", 2)]
        tagged = [launch("m", 1), launch("k", 0), complete("m", 1), complete("k", 0)]
        found = timeline([*(f"[rank4]: {line}" for line in tagged), *mixed])
        runs = [
            run
            for run, process in zip(column(found, "run"), column(found, "process"), strict=True)
            if process == "rank4"
        ]
        assert runs == [0, 0]


def test_an_op_that_completes_twice_does_not_take_the_completion_of_another() -> None:
    """As many completions as launches, and yet one op has two of them and another has none."""
    lines = [*pair("a", 0), launch("b", 1), *pair("c", 2), complete("c", 2)]
    assert matches(lines) == [("a", 1, 2), ("b", 3, None), ("c", 4, 5)]


def test_completions_out_of_order_go_to_their_own_launches() -> None:
    """Ids that leave none out are put in place, whatever the order of their completions."""
    lines = [launch("a", 7), launch("b", 8), launch("c", 9)]
    lines += [complete("c", 9), complete("a", 7), complete("b", 8)]
    assert matches(lines) == [("a", 1, 5), ("b", 2, 6), ("c", 3, 4)]
