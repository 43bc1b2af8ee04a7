"""A window that the caller chose: the conclusion says so, and what it leaves out."""

from __future__ import annotations

import msgspec

from analyzer.knowledge import Diagnosis, Knowledge
from analyzer.model import FaultRecord
from analyzer.schema import ASKED_WINDOW, Window
from analyzer.verdict import conclude
from analyzer.window.opened import ALL_CLEARED


def with_asked_window(found: Diagnosis, known: Knowledge) -> Diagnosis:
    """The diagnosis as it was made with ``--window``; unchanged without it, and without a fault.

    Args:
        found: What ``diagnose`` concluded.
        known: All inputs, with the lines that were asked for.
    """
    root = next((fault for fault in found.faults if fault.role == "root"), None)
    if known.lines_window is None or root is None:
        return found
    window = found.window
    if window is None or not window.begin.reason.startswith(ASKED_WINDOW):
        return _told(found, "The window given with --window has no part in this")
    record = next((one for one in known.records if (one.source, one.line) == (root.input, root.line)), None)
    if record is not None and window.begin.reason != ASKED_WINDOW:
        found = _doubted(found, record, window)
    return _told(found, f"The window was {window.begin.reason}")


def _told(found: Diagnosis, told: str) -> Diagnosis:
    statement = f"{found.conclusion.statement} {told}."
    return msgspec.structs.replace(
        found, conclusion=msgspec.structs.replace(found.conclusion, statement=statement)
    )


def _doubted(found: Diagnosis, record: FaultRecord, window: Window) -> Diagnosis:
    """At most *ranked* where the log speaks against the window; nobody is named where it clears all of it."""
    before = found.conclusion
    if before.confidence not in {"likely", "ranked"}:
        return found
    if ALL_CLEARED in window.begin.reason:
        nobody = conclude.undecided(record, "only launches that it clears were asked about")
        nobody = msgspec.structs.replace(nobody, cause_class=before.cause_class)
        return msgspec.structs.replace(found, conclusion=nobody, suspects=[])
    capped = conclude.by_share(record, found.suspects, window, "ranked")
    ranked = msgspec.structs.replace(before, confidence="ranked", statement=capped.statement)
    return msgspec.structs.replace(found, conclusion=ranked)
