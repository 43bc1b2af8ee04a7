"""Driver, tool and library witnesses on their own samples: cut, shared, repeated."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from analyzer.grammar import data_path
from analyzer.model import FaultRecord
from analyzer.witness import Witness, witnesses
from tests.witnesses.conftest import MemoryLog

NAMES = (
    "compute-sanitizer",
    "cuda_macros",
    "ggml",
    "nccl",
    "process_group_nccl",
    "rocm",
    "trtllm",
    "xid",
    "xla",
)
LOGS = sorted(path for name in NAMES for path in data_path("sample_logs").glob(f"{name}/*/*.[lt][ox][gt]"))
FOREIGN = ("INFO 03-04 10:00:00 [loggers.py:118] Running: 4 reqs", "", "{'loss': 1.25, 'epoch': 0.1}")
every_log = pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")


def witness_of(path: Path) -> Witness:
    name = path.parent.parent.name
    return next(witness for witness in witnesses() if witness.name == name)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").replace("\r", "\n").splitlines()


def test_each_of_them_has_two_samples() -> None:
    counts = {name: sum(path.parent.parent.name == name for path in LOGS) for name in NAMES}
    assert min(counts.values()) >= 2, counts


@every_log
def test_a_log_cut_between_any_two_lines_loses_nothing(path: Path) -> None:
    """Both halves are read; no line is taken twice and none is a loss."""
    witness, lines = witness_of(path), lines_of(path)
    for cut in range(1, len(lines)):
        for part in (lines[:cut], lines[cut:]):
            log = MemoryLog(part)
            reading = witness.read(log.gated(witness), log)
            assert not reading.losses, (cut, reading.losses)
            assert not set(reading.parsed) & set(reading.continuation)
            assert all(1 <= record.line <= len(part) for record in reading.records)


@every_log
def test_a_line_cut_anywhere_is_a_loss_at_worst(path: Path) -> None:
    witness, lines = witness_of(path), lines_of(path)
    for at, line in enumerate(lines):
        for end in range(len(line) - 1, 0, -max(1, len(line) // 4)):
            log = MemoryLog([*lines[:at], line[:end]])
            reading = witness.read(log.gated(witness), log)
            assert {loss.line for loss in reading.losses} <= {at + 1}


@every_log
def test_lines_of_another_process_in_between_change_nothing(path: Path) -> None:
    witness, lines = witness_of(path), lines_of(path)
    alone = MemoryLog(lines)
    mixed = MemoryLog(
        [text for line in lines for text in (line, *FOREIGN)],
        [writer for _ in lines for writer in ("", *("other",) * len(FOREIGN))],
    )
    expected = witness.read(alone.gated(witness), alone)
    found = witness.read(mixed.gated(witness), mixed)
    step = len(FOREIGN) + 1
    assert [(type(r), r.line) for r in found.records] == [
        (type(r), (r.line - 1) * step + 1) for r in expected.records
    ]


@every_log
def test_twenty_thousand_repeats_are_cheap(path: Path) -> None:
    """A dead context repeats itself for ever: folded by Polars, parsed once."""
    witness, lines = witness_of(path), lines_of(path)
    gated = [line for line in lines if any(gate in line for gate in witness.gates)]
    log = MemoryLog(gated * (20_000 // max(1, len(gated))))
    frame = log.gated(witness)
    began = time.process_time()
    reading = witness.read(frame, log)
    assert time.process_time() - began < 10
    faults = [record for record in reading.records if isinstance(record, FaultRecord)]
    assert len(faults) <= 600
