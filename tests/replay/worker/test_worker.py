"""The worker: a real child, a plan, and what its journal says."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.replay.worker.job import load_job
from analyzer.replay.worker.run import Worker
from tests.replay.worker.jobs import indices, lines_of, op, run_here, run_worker, tensor, write_job

SELECT = {"self": tensor(4, 3), "dim": "0", "index": indices(0, 3)}


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


def test_an_op_is_journalled_before_its_launch_and_done_after_it(tmp_path: Path) -> None:
    ran = run_worker(tmp_path, [op("aten::index_select", arguments=SELECT)])
    assert ran.events() == [("op", 0), ("done", 0), ("bye", None)]
    assert ran.code == 0
    begun, done = ran.first("op"), ran.first("done")
    assert [(one.shape, one.dtype, one.low, one.high) for one in begun.inputs] == [
        ([4, 3], "float32", None, None),
        ([2], "int64", 0, 3),
    ]
    assert [one.shape for one in done.outputs] == [[2, 3]]
    assert done.duration_ns
    assert done.on_device is False


def test_a_recorded_index_out_of_range_fails_with_its_op_journalled_and_not_done(tmp_path: Path) -> None:
    bad = op("aten::index_select", 1, arguments={**SELECT, "index": indices(0, 9)})
    after = op("aten::relu", 2, arguments={"self": tensor(2)})
    ran = run_worker(tmp_path, [op("aten::relu", arguments={"self": tensor(2)}), bad, after])
    assert ran.code == 1
    assert ran.events() == [("op", 0), ("done", 0), ("op", 1), ("failed", 1)]
    failed = ran.first("failed")
    assert (failed.error_type, failed.why) == ("IndexError", None)
    assert failed.error == "index out of range in self"
    assert "IndexError: index out of range in self" in ran.output
    opened = next(one for one in ran.journal.of("op") if one.number == 1)
    assert (opened.inputs[1].low, opened.inputs[1].high) == (0, 9)


def test_the_control_of_the_same_op_passes_with_its_indices_clamped(tmp_path: Path) -> None:
    bad = op("aten::index_select", arguments={**SELECT, "index": indices(-5, 2, 9, extent=4)})
    ran = run_worker(tmp_path, [bad], valid=(0,))
    assert ran.code == 0
    assert (ran.first("op").inputs[1].low, ran.first("op").inputs[1].high) == (0, 3)


def test_an_index_of_unknown_extent_is_zero_in_the_control(tmp_path: Path) -> None:
    bad = op("aten::index_select", arguments={**SELECT, "index": indices(1, 2, 9)})
    ran = run_here(tmp_path, [bad], valid=(0,))
    assert (ran.code, ran.first("op").inputs[1].high) == (0, 0)


def test_recorded_ends_of_a_range_out_of_the_extent_are_evidence(tmp_path: Path) -> None:
    range_only = tensor(5, dtype="int64", fidelity="statistics", low=0, high=4, extent=4)
    ran = run_here(tmp_path, [op("aten::index_select", arguments={**SELECT, "index": range_only})])
    assert (ran.code, ran.first("failed").error_type) == (1, "IndexError")
    made = tensor(5, dtype="int64", extent=4)
    ran = run_here(tmp_path, [op("aten::index_select", arguments={**SELECT, "index": made})])
    assert (ran.code, ran.first("op").inputs[1].high) == (0, 3)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("aten::mm", {"self": tensor(4, 3), "mat2": tensor(4, 3)}),
        ("aten::add", {"self": tensor(3), "other": tensor(4)}),
        ("aten::view", {"self": tensor(12), "size": "5"}),
        ("aten::embedding", {"weight": tensor(4, 3), "indices": tensor(2)}),
        ("aten::softmax", {"self": tensor(4), "dim": "7"}),
        ("aten::index", {"self": tensor(4), "indices": (indices(0), indices(0))}),
        ("aten::index", {"self": tensor(4), "indices": (tensor(2),)}),
        ("aten::linear", {"input": tensor(4, 4), "weight": tensor(4, 4, dtype="bfloat16")}),
    ],
)
def test_a_call_that_does_not_fit_the_op_is_not_taken_for_the_fault(
    tmp_path: Path, call: str, arguments: dict[str, object]
) -> None:
    ran = run_here(tmp_path, [op(call, arguments=arguments)])
    assert (ran.code, ran.first("failed").why) == (1, "call"), ran.first("failed").error


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("aten::take", {"self": tensor(4, 3), "index": indices(12)}),
        ("aten::gather", {"self": tensor(4), "dim": "0", "index": indices(4)}),
        ("aten::index", {"self": tensor(4), "indices": (indices(-5),)}),
        ("aten::embedding_bag", {"weight": tensor(4, 3), "indices": indices(9), "offsets": indices(0)}),
        ("aten::nll_loss", {"self": tensor(1, 3), "target": indices(7)}),
        ("aten::bincount", {"self": indices(-1)}),
        ("aten::one_hot", {"self": indices(5), "num_classes": "3"}),
        ("aten::empty", {"size": "1125899906842624"}),
        ("aten::_assert_async", {"self": tensor(dtype="bool", fidelity="recorded", values=(False,))}),
        (
            "aten::multinomial",
            {"self": tensor(2, fidelity="recorded", values=("nan", 1.0)), "num_samples": "1"},
        ),
    ],
)
def test_bad_values_and_memory_are_faults(tmp_path: Path, call: str, arguments: dict[str, object]) -> None:
    ran = run_here(tmp_path, [op(call, arguments=arguments)])
    assert ran.code == 1
    failed = ran.first("failed")
    assert failed.why is None, failed.error


def test_inputs_that_cannot_be_made_are_no_failure_of_the_op(tmp_path: Path) -> None:
    lost = tensor(2, dtype="int64", fidelity="recorded", file="gone.safetensors", key="index")
    ran = run_here(tmp_path, [op("aten::index_select", arguments={**SELECT, "index": lost})])
    assert ran.events() == [("failed", 0)]
    assert (ran.code, ran.first("failed").why) == (1, "inputs")


def test_what_cannot_be_executed_is_skipped_and_the_rest_runs(tmp_path: Path) -> None:
    fine = op("aten::relu", 5, arguments={"self": tensor(2)})
    ops = [
        op("aten::no_such_op"),
        op("aten::relu", 1, overload="nothing", arguments={"self": tensor(2)}),
        op("aten::relu", 2, arguments={"self": tensor(2, dtype="int3")}),
        op("aten::relu", 3, why_not="edited out", arguments={"self": tensor(2)}),
        op("aten::mm", 4, arguments={"self": tensor(2, 2)}),
        fine,
    ]
    ran = run_here(tmp_path, ops)
    assert ran.code == 0
    assert ran.events() == [
        *(("skipped", number) for number in range(5)),
        ("op", 5),
        ("done", 5),
        ("bye", None),
    ]
    whys = [one.why or "" for one in ran.journal.of("skipped")]
    parts = ("no aten::no_such_op", "no overload nothing", "int3", "edited out", "no overload of aten::mm")
    for part, why in zip(parts, whys, strict=True):
        assert part in why


def test_a_result_of_the_job_is_the_input_of_a_later_op(tmp_path: Path) -> None:
    """And the control of that later op alone takes it clamped."""
    ops = [
        op("aten::add", arguments={"self": indices(1, 2), "other": 7}),
        op(
            "aten::index_select",
            1,
            arguments={
                "self": tensor(4, 3),
                "dim": 0,
                "index": tensor(2, dtype="int64", from_op=0, extent=4),
            },
        ),
    ]
    ran = run_here(tmp_path, ops)
    assert ran.events() == [("op", 0), ("done", 0), ("op", 1), ("failed", 1)]
    begun = list(ran.journal.of("op"))[1]
    assert (begun.inputs[1].low, begun.inputs[1].high) == (8, 9)
    assert begun.inputs[1].storage == ran.first("done").outputs[0].storage
    assert run_here(tmp_path, ops, valid=(1,)).code == 0
    alone = run_here(tmp_path, ops, chosen=(1,))
    assert (alone.code, alone.events()) == (0, [("op", 1), ("done", 1), ("bye", None)])


def test_results_are_let_go_of_behind_the_last_op_that_takes_them(tmp_path: Path) -> None:
    taken = {"self": tensor(2, dtype="int64", from_op=0)}
    ops = [
        op("aten::add", arguments={"self": indices(1, 2), "other": 7}),
        op("aten::neg", 1, arguments=taken),
        op("aten::abs", 2, arguments=taken),
        op("aten::relu", 3, arguments={"self": tensor(2)}),
    ]
    worker = Worker(load_job(write_job(tmp_path, ops)))
    kept = []

    def run_one(number: int) -> None:
        assert worker._run_one(worker._ops[number])
        worker._forget(number)
        kept.append(sorted(worker._results))

    for number in range(len(ops)):
        run_one(number)
    assert kept == [[(0, 0)], [(0, 0)], [], []]


def test_a_written_input_is_seen_by_the_next_op_and_launched_once(tmp_path: Path) -> None:
    ops = [
        op("aten::add_", arguments={"self": indices(1, 2), "other": 1}),
        op("aten::neg", 1, arguments={"self": tensor(2, dtype="int64", from_op=0)}),
    ]
    ran = run_here(tmp_path, ops, timing_runs=5)
    begun = list(ran.journal.of("op"))
    assert begun[0].mutates is True
    assert (begun[1].inputs[0].low, begun[1].inputs[0].high) == (2, 3)


def test_a_device_that_is_not_here_is_replaced_and_it_is_said_once(tmp_path: Path) -> None:
    ops = [op("aten::relu", number, arguments={"self": tensor(2, device="cuda:77")}) for number in (0, 1)]
    ran = run_here(tmp_path, ops)
    assert ran.code == 0
    assert [one.why for one in ran.journal.of("note")] == ["torch has no cuda:77 here: executed on the cpu"]
    assert ran.first("op").inputs[0].device == "cpu"
    assert not list(run_here(tmp_path, ops, device="cpu").journal.of("note"))


def test_the_place_and_the_step_of_the_log_are_in_the_journal(tmp_path: Path) -> None:
    source = {"file": "serve.py", "line": 7, "function": "step", "text": None}
    one = op("aten::relu", arguments={"self": tensor(2)}, step=9, source=source)
    ran = run_here(tmp_path, [one])
    begun = ran.first("op")
    assert (begun.step, begun.place and begun.place.line) == (9, 7)


def test_a_dead_worker_leaves_the_op_that_killed_it_open(tmp_path: Path) -> None:
    """Written before the launch and not buffered."""
    crash = "import os\n\ndef crash(x):\n    os.kill(os.getpid(), 11)\n"
    (tmp_path / "mine.py").write_text(crash)
    ran = run_worker(
        tmp_path,
        [op("crash", executor="user", arguments={"x": tensor(2)})],
        user_ops=str(tmp_path / "mine.py"),
    )
    assert ran.code == -11
    opened = ran.journal.open_op()
    assert opened is not None
    assert opened.name == "crash"


def test_a_job_that_makes_no_sense_launches_nothing(tmp_path: Path) -> None:
    ran = run_worker(tmp_path, [], plan=str(tmp_path / "gone.json"))
    assert ran.code == 1
    assert ran.journal.entries == ()
    assert "gone.json" in ran.output


def test_null_facts_are_left_out_of_the_journal(tmp_path: Path) -> None:
    run_here(tmp_path, [op("aten::relu", arguments={"self": tensor(2)})])
    assert all(None not in line.values() for line in lines_of(tmp_path / "journal"))


def test_what_an_op_draws_by_chance_is_the_same_in_each_child(tmp_path: Path) -> None:
    ops = [
        op("aten::randint", arguments={"high": "1000000", "size": "4"}),
        op("aten::neg", 1, arguments={"self": tensor(4, from_op=0)}),
        op("aten::neg", 2, arguments={"self": tensor(4, dtype="int64", from_op=0)}),
    ]
    drawn = [
        [(one.low, one.high) for one in list(run_here(tmp_path, ops, seed=seed).journal.of("op"))[2].inputs]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_result_of_another_type_than_the_plan_says_is_not_taken(tmp_path: Path) -> None:
    ops = [
        op("aten::add", arguments={"self": indices(1, 2), "other": 7}),
        op("aten::neg", 1, arguments={"self": tensor(2, dtype="int32", from_op=0)}),
        op("aten::neg", 2, arguments={"self": tensor(3, dtype="int64", from_op=0)}),
    ]
    begun = list(run_here(tmp_path, ops).journal.of("op"))
    assert [(one.inputs[0].dtype, one.inputs[0].high) for one in begun] == [
        ("int64", 2),
        ("int32", 0),
        ("int64", 0),
    ]
