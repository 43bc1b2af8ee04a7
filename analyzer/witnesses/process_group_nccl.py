"""PyTorch's watchdog over NCCL collectives (formats.md 3.6).

It polls from a thread of its own, so its frames never name the culprit. ``terminated with exception: CUDA
error`` met a fault that the main thread has too; a timeout says that some rank did not come to a collective,
and how far each rank came tells which. Under ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` it says so itself.
"""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.model import Advice, CollectiveState, FaultRecord, Reading
from analyzer.numbers import MAX_RANK, need_integer
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Form, Seen, build_fault, error_code, read_forms, with_traceback

NAME = "process_group_nccl"
_WHO = r"(?:\[(?:PG[^\]]*?)? ?Rank [0-9]+\] *)*"
_RECORDER = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"
_CUDA = ("CUDA error: ", "HIP error: ")
_FORMS = (
    Form(rule="timeout", begins=_WHO + "Watchdog caught collective operation timeout: "),
    Form(
        rule="terminated", begins=_WHO + "(?:Process group|NCCL) watchdog thread terminated with exception: "
    ),
    Form(
        rule="status",
        begins=_WHO + "(?:failure detected by watchdog at work sequence id"
        r"|Exception \(either an error or timeout\) detected by watchdog at work|Timeout at NCCL work): ",
    ),
    Form(rule="recorder", begins=_WHO + "Stack trace of the failed collective not found"),
    Form(rule="stuck", begins=_WHO + "ProcessGroupNCCL's watchdog got stuck"),
    Form(
        rule="told",
        begins=_WHO
        + "(?:Some NCCL operations have failed or timed out|To avoid data inconsistency, we are taking"
        "|First PG on this rank to signal dumping|Received a (?:global )?(?:timeout|dump) signal"
        "|(?:ProcessGroupNCCL )?Observed flight recorder dump signal)",
    ),
    Form(rule="mismatch", begins="Detected mismatch between collectives on ranks[.]"),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    # Sequence numbers tell how far a rank came: they are no noise.
    seen = read_forms(frame, NAME, _FORMS, losses, blank=("(ran for )[0-9]+",))
    reading = Reading()
    advised = False
    timeouts: dict[tuple[str, int | None, str | None], int] = {}
    for one in seen:
        reading.parsed.extend(one.lines)
        if one.rule == "recorder" and not advised:
            advised = True
            text = "the flight recorder is off: it keeps the stack of each collective"
            reading.records.append(
                Advice(source=one.source, line=one.line, text=text, command=f"{_RECORDER} <your command>")
            )
        if one.rule == "mismatch":
            fault, used = with_traceback(_mismatch(one), fetch)
            reading.records.append(fault)
            reading.continuation.extend(used)
        for record in _records(one):
            key = (one.process, record.rank, one.get("SEQUENCE"))
            if isinstance(record, FaultRecord) and record.kind == "hang_timeout" and key in timeouts:
                _count(reading, timeouts[key], record)
                continue
            if isinstance(record, FaultRecord) and record.kind == "hang_timeout":
                timeouts[key] = len(reading.records)
            reading.records.append(record)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _count(reading: Reading, at: int, again: FaultRecord) -> None:
    """The exception that the thread ends with repeats the timeout."""
    first = reading.records[at]
    assert isinstance(first, FaultRecord)
    last = max(first.last_line, again.last_line)
    reading.records[at] = msgspec.structs.replace(first, count=first.count + again.count, last_line=last)


def _records(one: Seen) -> list[FaultRecord | CollectiveState]:
    rank = _rank(one)
    if one.rule in {"timeout", "stuck"}:
        fault = build_fault(one, NAME, "hang_timeout", "unknown", met=True)
        state = [_state(one, rank)] if rank is not None and one.rule == "timeout" else []
        return [msgspec.structs.replace(fault, rank=rank), *state]
    if one.rule == "terminated":
        return [msgspec.structs.replace(_terminated(one), rank=rank)]
    return [_state(one, rank)] if one.rule == "status" and rank is not None else []


def _rank(one: Seen) -> int | None:
    """In the group's tag, else that of the line."""
    group = one.get("GROUP")
    return need_integer(group.rpartition("Rank ")[2].rstrip("]"), MAX_RANK) if group else one.rank


def _state(one: Seen, rank: int) -> CollectiveState:
    return CollectiveState(
        source=one.source,
        process=one.process,
        line=one.line,
        rank=rank,
        enqueued=one.number("ENQUEUED"),
        completed=one.number("COMPLETED"),
        sequence=one.number("SEQUENCE"),
        operation=one.get("OPERATION"),
        elements=one.number("NUMEL"),
        timeout_ms=one.number("TIMEOUT"),
        group=(one.get("GROUP") or "").strip("[]").rpartition("Rank ")[0].strip(),
    )


def _mismatch(one: Seen) -> FaultRecord:
    """Under ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` PyTorch compares what the ranks are about to do."""
    fault = build_fault(one, NAME, "input_check", "host")
    ranks = one.fields.get("RANK", [])
    told = " and ".join(f"rank {rank} in {_fingerprint(one, at)}" for at, rank in enumerate(ranks))
    text = f"the ranks are in different collectives: {told}"
    return msgspec.structs.replace(fault, rank=one.number("RANK"), text=text)


def _fingerprint(one: Seen, at: int) -> str:
    shape, sequence = one.get("SHAPE", at), one.get("SEQUENCE", at)
    of = f" of {shape}" if shape else ""
    return f"{one.get('OPERATION', at)}{of}" + (f" (number {sequence})" if sequence else "")


def _terminated(one: Seen) -> FaultRecord:
    """What the watchdog's thread died of: a CUDA error that it met, or the text of another failure."""
    reason = (one.get("REASON") or "").strip()
    words = next((reason.partition(word)[2] for word in _CUDA if word in reason), None)
    kind: FaultKind
    if words is None:
        kind = "peer_lost" if "remote process exited" in reason else "unknown"
        return build_fault(one, NAME, kind, "unknown", met=True)
    known = error_code(None, None, words.partition("Search for")[0].replace("\\n", "\n").partition("\n")[0])
    vendor = "amd" if "HIP error" in reason else "nvidia"
    return build_fault(
        one, NAME, known.kind if known else "unknown", "sync", code=known, vendor=vendor, met=True
    )


WITNESS = Witness(
    name=NAME,
    program="torch",
    collective=True,
    gates=(
        "Watchdog caught collective operation timeout",
        "watchdog thread terminated with exception",
        "last enqueued",
        "Stack trace of the failed collective not found",
        "watchdog got stuck",
        "NCCL operations have failed or timed out",
        "we are taking the entire process down",
        "to signal dumping",
        "flight recorder dump signal",
        "Detected mismatch between collectives on ranks",
    ),
    read=read,
    grammar="process_group_nccl.lark",
)
