"""Launches joined with their completions, by process, run and id."""

from __future__ import annotations

import polars as pl

_RESTART_DROP = 4096  # ids of one run may print slightly out of order (threads); a restart drops far
_THREADS = 64  # the first ids of that many threads may print in any order, id 0 not first
_LANE_LIMIT = 400_000  # untagged writers are told apart row by row: only for logs that a person can mix


def mark_runs(ops: pl.DataFrame) -> pl.DataFrame:
    """Number the runs of each process: ids start at 0 again when the server restarts (observed.md 9).

    Args:
        ops: ``OPS`` in line order.

    Returns:
        ``ops`` plus ``run`` u32. Completions belong to the run that is going on.
    """
    if _single_writer(ops) and _rising(ops["id"].filter(ops["launch"])):
        return ops.with_columns(pl.lit(0, dtype=pl.UInt32).alias("run"))  # no id ever fell: one run
    own = pl.col("id").cast(pl.Int64)
    before = pl.when("launch").then(own).forward_fill().shift(1)
    zero = pl.col("launch") & (own == 0)
    again = zero & ((zero.cum_sum() > 1) | (before > _THREADS))
    restart = pl.col("launch") & before.is_not_null() & (again | (before - own > _RESTART_DROP))
    run = restart.fill_null(False).cast(pl.UInt32).cum_sum().alias("run")
    if _single_writer(ops):
        return ops.with_columns(run)
    return ops.with_columns(run.over("source", "process"))


def _single_writer(ops: pl.DataFrame) -> bool:
    if ops.is_empty():
        return True
    same = ops.select((pl.col("source", "process") == pl.col("source", "process").first()).all())
    return all(same.row(0))


def untagged_writers(ops: pl.DataFrame) -> pl.DataFrame:
    """Process keys that cover several writers: source, process.

    Told by what one process cannot print: an id launched twice within one run, an earlier run that goes on
    with its next id after id 0 came again, or a completion there of an op that was open in that run.
    """
    launches, owner = ops.filter("launch"), ["source", "process"]
    if ops["run"].max() in {None, 0} and not _repeats(launches, _key(ops)):
        return launches.select(owner).clear()
    run = [*owner, "run"]
    repeated = launches.filter(pl.struct(*run, "id").is_duplicated())
    reached = launches.group_by(run).agg(pl.col("id").max().alias("reached")).with_columns(pl.col("run") + 1)
    jumps = launches.filter(pl.col("id") > pl.col("id").shift(1).over(owner) + 1)
    resumed = jumps.join(reached, on=run).filter(pl.col("id") == pl.col("reached") + 1)
    foreign = ops.filter(~pl.col("launch")).join(launches, on=[*run, "id", "name"], how="anti")
    late = foreign.join(launches.with_columns(pl.col("run") + 1), on=[*run, "id", "name"], how="semi")
    return pl.concat([found.select(owner) for found in (repeated, resumed, late)]).unique()


def _key(ops: pl.DataFrame) -> list[str]:
    """The columns that tell ops of these rows apart; fewer columns are joined faster."""
    if not _single_writer(ops):
        return ["source", "process", "run", "id"]
    return ["run", "id"] if ops["run"].n_unique() > 1 else ["id"]


def _rising(ids: pl.Series) -> bool:
    """Whether each id is above the one before, as in one run of one writer."""
    return bool((ids.slice(1) > ids.head(max(0, ids.len() - 1))).all())


def _repeats(rows: pl.DataFrame, key: list[str]) -> bool:
    """Whether a key occurs twice. Rising ids cannot: that is seen without hashing a million rows."""
    if key == ["id"]:
        ids = rows["id"]
        return not _rising(ids) and ids.n_unique() < ids.len()
    return rows.select(key).n_unique() < rows.height


def split_lanes(ops: pl.DataFrame) -> pl.DataFrame:
    """Tell untagged writers apart by the ids that each must print next; ``run`` becomes the lane.

    Two writers in one untagged stream print two interleaved id sequences. A launch goes to the lane that
    waits for its id; where two lanes wait for the same id the writer cannot be known, and the lane that
    waited longer takes it. A completion goes to the lane where that (id, name) is open.
    """
    if ops.height > _LANE_LIMIT:
        return ops
    expected: list[int] = []
    touched: list[int] = []
    open_ops: dict[tuple[int, str], list[int]] = {}
    lanes: list[int] = []
    rows = ops.select("launch", "id", pl.col("name").cast(pl.String)).iter_rows()
    for position, (launch, op_id, name) in enumerate(rows):
        if not launch:
            waiting = open_ops.get((op_id, name))
            lanes.append(waiting.pop(0) if waiting else 0)
            continue
        waiting_for = [lane for lane, wanted in enumerate(expected) if wanted == op_id]
        behind = [lane for lane, wanted in enumerate(expected) if wanted < op_id]
        if waiting_for:
            lane = min(waiting_for, key=lambda one: touched[one])
        elif behind:  # lines are missing: the writer that is nearest below went on
            lane = max(behind, key=lambda one: expected[one])
        else:
            lane = len(expected)
            expected.append(op_id)
            touched.append(position)
        expected[lane], touched[lane] = op_id + 1, position
        open_ops.setdefault((op_id, name), []).append(lane)
        lanes.append(lane)
    return ops.with_columns(pl.Series("run", lanes, dtype=pl.UInt32))


def match_completions(ops: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Join every launch with the completion of the same op.

    Args:
        ops: ``OPS`` with ``run``, in line order. Ids restart with the process and the run, so both are
            part of the key; a repeated (process, run, id) is matched in the order of its lines.

    Returns:
        ``TIMELINE`` without ``depth``, ``parent`` and ``step``, one row a launch by ``launch_line``, and the
        number of completions that have no launch in the log. Null ``completion_line`` = none in the log:
        unknown, not failed (observed.md 7).
    """
    key = _key(ops)
    launches, completions = ops.filter("launch"), ops.filter(~pl.col("launch"))
    if _repeats(launches, key):
        repeat = pl.int_range(pl.len()).over(key).alias("repeat")
        launches, completions = launches.with_columns(repeat), completions.with_columns(repeat)
        key = [*key, "repeat"]
    right = completions.select(
        *key, pl.col("line").alias("completion_line"), pl.col("time_ns").alias("completion_ns")
    )
    joined = _each_completed(launches, right) if key == ["id"] else None
    if joined is None:
        joined = launches.join(right, on=key, how="left", maintain_order="left")
    if joined.height > launches.height:  # an op completed twice: the first one counts
        first = right.unique(key, keep="first", maintain_order=True)
        joined = launches.join(first, on=key, how="left", maintain_order="left")
    matched = joined.height - joined["completion_line"].null_count()
    columns = ["source", "process", "run", "id", "name", "detail", "body_last", "stream", "clock"]
    timeline = joined.select(
        *columns,
        pl.col("line").alias("launch_line"),
        "completion_line",
        pl.col("time_ns").alias("launch_ns"),
        "completion_ns",
    )
    return timeline, ops.height - launches.height - matched


def _each_completed(launches: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame | None:
    """The usual log: rising launch ids, each completed once. Null = it is not like that.

    Then the completions in the order of their ids stand beside their launches, and no million rows are
    hashed; where the ids leave none out they need not even be sorted.
    """
    if launches.height != right.height or launches.is_empty():
        return None
    if _leaves_none_out(launches["id"]):
        return _put_in_place(launches, right)
    right = right.sort("id")
    if not (right["id"] == launches["id"]).all():
        return None
    return launches.with_columns(right["completion_line"], right["completion_ns"])


def _leaves_none_out(ids: pl.Series) -> bool:
    """Whether each id is one above the one before."""
    return int(ids[-1]) - int(ids[0]) + 1 == ids.len() and _rising(ids)


def _put_in_place(launches: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame | None:
    """As many completions as launches, each put beside the launch that its id counts to."""
    first, count = int(launches["id"][0]), launches.height
    if right["id"].min() != first or right["id"].max() != launches["id"][-1]:
        return None
    places = (right["id"] - first).cast(pl.UInt32)
    lines = pl.Series("completion_line", [0], dtype=pl.UInt32).new_from_index(0, count)
    lines = lines.scatter(places, right["completion_line"])
    if (lines == 0).any():  # one place got two of them
        return None
    times = right["completion_ns"]
    if times.null_count() < count:
        times = times.new_from_index(0, count).scatter(places, times)
    return launches.with_columns(lines, times.alias("completion_ns"))
