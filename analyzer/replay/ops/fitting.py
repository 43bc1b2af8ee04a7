"""Is the failure of a replayed op evidence for the failure in the log? Pure rules."""

from __future__ import annotations

import re

from analyzer.replay.compare import accused, is_suspect
from analyzer.replay.observe import root_fault
from analyzer.replay.ops.observe import OpFinding
from analyzer.replay.plan import PlanOp, PlanTensor
from analyzer.replay.report import BlamedOp
from analyzer.schema import Fault, FaultKind, Result, Suspect

# Faces of one bug: the same bad index or pointer is told as any of these (observed.md 15).
_ACCESS: frozenset[FaultKind] = frozenset(
    {
        "illegal_address",
        "invalid_address_space",
        "misaligned_address",
        "launch_failure",
        "device_assert",
        "host_segfault",
    }
)
_INDEX = re.compile(r"IndexError|out of (?:\w+ )?(?:range|bounds?)|\bbounds\b", re.IGNORECASE)
_TELLING = 12  # characters: shorter texts stand in many errors
_NUMBER = re.compile(r"\d+")


def made_inputs_refused(op: PlanOp, finding: OpFinding, log: Result) -> str | None:
    """Inputs that we made were refused by a check: that shows them wrong, not the op. Null = it does not.

    Made indices are valid by construction, so a check of them that fails is our mistake. It is the log's
    failure only where a recorded range is out of bounds itself, or where the log has the very same text and
    the op has no integer inputs (shapes alone decide).
    """
    if finding.outcome != "failed" or op.fidelity() == "recorded":
        return None
    if not finding.host and finding.kind != "device_assert":
        return None
    whole = [one for one in op.tensors() if one.dtype.startswith(("int", "uint", "bool"))]
    if any(_has_bad_range(one) for one in whole):
        return None
    root = root_fault(log)
    if root is not None and not whole and has_text_of(finding, root):
        return None
    return f"the inputs made for it were refused: {finding.error}"


def misfit(finding: OpFinding, log: Result) -> str | None:
    """Why the failure is another one than the log's; null = it is of the same class."""
    root = root_fault(log)
    error = finding.error or finding.kind or "an error without a text"
    if root is None:
        return f"the log has no fault: this failure ({error}) is another one"
    if is_same_class(root, finding):
        return None
    return f"that is another failure than the log's: {error}"


def is_other_failure(finding: OpFinding, log: Result) -> bool:
    """Whether an op failed, but not in the way of the log's fault."""
    if finding.outcome != "failed" or finding.number is None or finding.own is not None:
        return False
    return root_fault(log) is not None and misfit(finding, log) is not None


def is_same_class(root: Fault, finding: OpFinding) -> bool:
    """Same text, same kind, two faces of a bad access, or the same exception of host code."""
    if has_text_of(finding, root):
        return True
    if finding.host and (root.code is None and not root.sticky and root.kind not in _ACCESS):
        return _exception(root.text) == _exception(finding.error or "")
    if root.kind == finding.kind:
        return True
    return root.kind in _ACCESS and (finding.kind in _ACCESS or is_index_error(finding))


def has_text_of(finding: OpFinding, root: Fault) -> bool:
    """Whether the error has the log's own text, but for numbers; MAX puts the cause below other lines."""
    wanted = _plain(root.text)
    told = f"{finding.error or ''}\n{finding.text or ''}"
    return len(wanted) >= _TELLING and any(wanted in _plain(line) for line in told.splitlines())


def is_index_error(finding: OpFinding) -> bool:
    """Whether host code refused an index: on the CPU that is what a wild read is on a device."""
    return finding.host and _INDEX.search(finding.error or "") is not None


def is_accused(op: PlanOp, blamed: BlamedOp, log: Result) -> bool:
    """Whether an op is one that the log suspects (or it suspects nobody)."""
    suspects = accused(log)
    return not suspects or any(_is_ranked(op, one) or is_suspect(blamed, one) for one in suspects)


def _is_ranked(op: PlanOp, suspect: Suspect) -> bool:
    """Whether the plan's rank is that of this log: a plan can be edited, or be of another one."""
    same_place = suspect.op.line is None or suspect.op.line == op.line
    return op.suspect == suspect.rank and op.name == suspect.op.name and same_place


def _has_bad_range(tensor: PlanTensor) -> bool:
    """Whether the log told a smallest or largest value that is no index; both of them occurred."""
    if tensor.fidelity != "statistics":
        return False
    if tensor.extent is None:
        return True
    low, high = tensor.low, tensor.high
    return (low is not None and low < 0) or (high is not None and high >= tensor.extent)


def _exception(text: str) -> str:
    return text.partition(":")[0].strip().rpartition(".")[2]


def _plain(text: str) -> str:
    return _NUMBER.sub("0", text.partition("\n")[0].strip())
