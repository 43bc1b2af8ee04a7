"""Several candidates where one is asked for: names in one report, asserts without a tag."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.incident.asserts import is_assert_text
from analyzer.incident.several_kernels import report_of
from analyzer.knowledge import Finding, Knowledge
from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import Conclusion, Reason
from analyzer.suspects.join import join_kernel
from analyzer.suspects.rank import rank
from analyzer.verdict import conclude
from analyzer.verdict.exact import facts_of_fault
from analyzer.window.opened import open_window

_SHOWN = 4


def named_together(known: Knowledge, fault: FaultRecord) -> list[FaultRecord]:
    """All records of the report of ``fault`` if it names several kernels, itself included."""
    same = [
        one
        for one in known.records
        if (one.source, one.line, one.process, one.witness) == report_of(fault) and one.state is not None
    ]
    return same if len({one.state.kernel for one in same if one.state is not None}) > 1 else []


def one_of_names(
    known: Knowledge, fault: FaultRecord, together: Sequence[FaultRecord], ops: pl.DataFrame
) -> Finding:
    """Kernels that one report names: each can be the one that faulted, so none is put forward alone."""
    opened = None if ops.is_empty() else open_window(known, fault, ops, None)
    facts: list[OpFacts] = []
    for one in together:
        assert one.state is not None
        joined = join_kernel(one.state, opened.facts, known.packages).ops if opened else ()
        facts.extend(joined or [facts_of_fault(msgspec.structs.replace(one, kernel=one.state.kernel))])
    facts = list({(op.ref.name, op.launch_line, op.ref.id): op for op in facts}.values())
    text = f"{fault.witness} names it with the fault, beside {len(together) - 1} more"
    reason = Reason(evidence="device_witness", text=text, weight=8.0, lines=[fault.line])
    suspects = [
        msgspec.structs.replace(one, reasons=[reason, *one.reasons])
        for one in rank(facts, fault, launches_before=0)
    ]
    names = " or ".join(_shown([one.kernel or "" for one in together]))
    statement = (
        f"{names} caused the {conclude.fault_words(fault)}: {fault.witness} names {len(together)} kernels"
        f" with it (line {fault.line}), and nothing tells which of them faulted."
    )
    conclusion = Conclusion(confidence="ranked", cause_class=None, suspect=None, statement=statement)
    if opened is None:
        return Finding(conclusion=conclusion, suspects=suspects)
    return Finding(conclusion=conclusion, suspects=suspects, window=opened.window, cleared=opened.cleared)


def with_other_asserts(conclusion: Conclusion, known: Knowledge, fault: FaultRecord) -> Conclusion:
    """The conclusion about an assert without a tag names the others beside it: another process's, perhaps."""
    if not is_assert_text(fault) or fault.process:
        return conclusion
    others = [
        one
        for one in known.records
        if is_assert_text(one)
        and one != fault
        and (one.source, one.process) == (fault.source, "")
        and not known.readers[one.source].is_cut(one.line)  # what is left of an expression is not another one
    ]
    if not others:
        return conclusion
    told = "; ".join(_shown([f"line {one.line}: {_words(one)}" for one in (fault, *others)]))
    note = (
        f"asserts without a tag, of one process or of several ({told}): the one printed first is told about"
    )
    return msgspec.structs.replace(conclusion, notes=[*conclusion.notes, note])


def _words(fault: FaultRecord) -> str:
    """``Assertion `i < n` failed`` of the text of an assert."""
    text = fault.text.partition(" failed")[0]
    return text[max(0, text.find("Assert")) :]


def _shown(words: Sequence[str]) -> list[str]:
    more = len(words) - _SHOWN
    return [*words[:_SHOWN], *([f"{more} more"] if more > 0 else [])]
