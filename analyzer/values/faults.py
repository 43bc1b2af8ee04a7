"""Faults that only printed tensor values show: NaN and Inf in what a kernel left, bad indices."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, PrintedValue
from analyzer.numbers import integer
from analyzer.values.bad_indices import find_bad_index
from analyzer.values.bad_values import find_bad_value
from analyzer.values.flaws import Flaw
from analyzer.values.launches import ProcessKernels, kernels_of, processes
from analyzer.values.prints import Prints

NAME = "aoti_printer"
WORDS = {"nan": "NaN", "inf": "Inf", "index": "index"}
_BOUNDS = "index out of bounds: 0 <= "


def printed_faults(known: Knowledge) -> list[FaultRecord]:
    """The faults that only printed values show."""
    return [
        _record(kernels, flaw)
        for source, process in processes(known)
        if (kernels := kernels_of(known, source, process)) is not None
        for flaw in flaws(kernels)
    ]


def flaws(kernels: ProcessKernels) -> Iterator[Flaw]:
    """Bad values that are faults."""
    prints = kernels.pairs()
    bad = find_bad_value(prints)
    if bad is not None and kernels.interleaved():
        notes = (*bad.notes, "several writers without tags share this log: whose value it is can be wrong")
        bad = msgspec.structs.replace(bad, sure=False, notes=notes)
    if bad is not None and (bad.sure or kernels.limit is None):  # a doubt explains no fault of the device
        yield bad
    yield from _bad_indices(kernels, prints)


def _bad_indices(kernels: ProcessKernels, prints: Prints) -> Iterator[Flaw]:
    """Bad indices: proven by a failure that can follow from one, at a launch that can have failed.

    A kernel that the log goes on after read its index and lived. Out of memory, a lost peer, an exception of
    the server follow from no index: where one of them is in the log, it stands for itself.
    """
    others = [record for record in _records(kernels) if record.witness != NAME]
    check = next((record for record in others if bound(record.text) is not None), None)
    if check is not None:
        among = can_have_failed(kernels, check)["id"].to_list()
        yield from find_bad_index(prints, kernels.launch, among=among, bound=bound(check.text))
    elif kernels.limit is not None:
        yield from find_bad_index(prints, kernels.launch, among=unproven(kernels)["id"].to_list())
    elif not others:
        notes = ("nothing failed afterwards: what the kernel read there was wrong",)
        for flaw in find_bad_index(prints, kernels.launch):
            yield msgspec.structs.replace(flaw, sure=False, notes=notes)


def _records(kernels: ProcessKernels) -> Iterator[FaultRecord]:
    """Faults of the process, and those of nobody in particular."""
    for record in kernels.known.records:
        if record.source == kernels.source and record.process in (kernels.process, ""):
            yield record


def can_have_failed(kernels: ProcessKernels, check: FaultRecord) -> pl.DataFrame:
    """Launches that a failed bounds check can be of: the last one of the kernel that it names."""
    left = kernels.launches.filter(pl.col("line") < check.line)
    if check.kernel is not None:
        return left.filter(pl.col("kernel") == check.kernel).tail(1)
    return left.filter(pl.col("id").is_in(unproven(kernels)["id"].implode()))


def _record(kernels: ProcessKernels, flaw: Flaw) -> FaultRecord:
    """The flaw as a fault of the host's own check: the values were read back."""
    launch = kernels.launches.filter(pl.col("id") == flaw.launch).row(0, named=True)
    times = f", launch {launch['occurrence']} of that name"
    if flaw.kind == "index":
        text = (
            f"{flaw.arg} holds {flaw.value:.15g} before {launch['kernel']}{times}: outside {flaw.table} with "
            f"{flaw.extent} rows"
        )
    else:
        text = f"{WORDS[flaw.kind]} in {flaw.arg} after {launch['kernel']}{times}"
    return FaultRecord(
        source=kernels.source,
        process=kernels.process,
        line=flaw.line,
        last_line=flaw.line,
        block_first=flaw.line,
        text=text,
        witness=NAME,
        kind="input_check" if flaw.kind == "index" else "nan",
        site="host",
        time_ns=launch["time_ns"],
        kernel=launch["kernel"],
        detail=PrintedValue(),
    )


def bound(text: str) -> int | None:
    """The extent in ``index out of bounds: 0 <= tmp4 < 1000``."""
    _, found, rest = text.partition(_BOUNDS)
    digits = rest.partition(" < ")[2]
    length = len(digits) - len(digits.lstrip("0123456789"))
    return integer(digits[:length]) if found else None


def last_read_back(kernels: ProcessKernels) -> dict[str, object] | None:
    """The last value that was read back from the device; a scalar never was on it."""
    values = kernels.prints.filter(pl.col("end").is_not_null() & (pl.col("form") != "scalar"))
    values = values.filter(pl.col("value").is_null())
    return values.row(-1, named=True) if values.height else None


def unproven(kernels: ProcessKernels) -> pl.DataFrame:
    """Launches that no read-back proves sound.

    A value printed after a launch proves it and all before it; one printed before a launch proves all before.
    The last kernel was not launched if what is printed before its launch stops in the middle.
    """
    proof = last_read_back(kernels)
    launches = kernels.launches
    if proof is None:
        return launches
    if proof["id"] is None:
        left = launches.filter(pl.col("line") > int(str(proof["line"])))
    else:
        number = int(str(proof["id"]))
        sound = pl.col("id") <= number if proof["event"] == "after" else pl.col("id") < number
        left = launches.filter(~sound)
    cut = kernels.prints.filter((pl.col("event") == "before") & pl.col("end").is_null())
    return left.filter(~pl.col("id").is_in(cut["id"].drop_nulls().implode()))
