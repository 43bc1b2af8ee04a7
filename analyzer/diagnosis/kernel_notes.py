"""What the conclusion says about the kernel log: hardware, what nothing links with the error, clean-up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.faults.kernel_links import Links
from analyzer.faults.kernel_log import (
    VERDICT,
    is_explainable,
    is_failing_hardware,
    is_kernel_log,
    joined_hardware,
    reading_of,
)
from analyzer.faults.xids import by_name
from analyzer.model import FaultRecord
from analyzer.schema import Conclusion, NextStep

_SHOWN = 3
_PUSH_BUFFER = "Xid 32"  # mostly PCIe, says NVIDIA's catalogue: neither software nor hardware by itself
_PROCESSES = "nvidia-smi --query-compute-apps=pid,gpu_bus_id,process_name --format=csv"
_HEALTH = "nvidia-smi -q -d ECC,ROW_REMAPPER"


def with_kernel_log(conclusion: Conclusion, records: Sequence[FaultRecord], root: FaultRecord) -> Conclusion:
    """Add what the kernel log says about the root fault.

    A hardware message of the kernel driver makes hardware the cause: the fault at hand is its consequence.
    One that nothing links with it is told, and blamed for nothing.
    """
    logged = [record for record in records if is_kernel_log(record)]
    if not logged:
        return conclusion
    hardware = joined_hardware(records, root)
    notes = [*conclusion.notes, *_of_hardware(hardware, root), *_of_verdict(records, root)]
    notes.extend(_of_unlinked(records, root))
    notes.extend(_of_other_hardware(records, root, hardware))
    notes.extend(_of_software(logged, root))
    cause = conclusion.cause_class
    if hardware:
        cause = "hardware"
    elif _is_unclear(logged, root, records):
        cause = None
    return msgspec.structs.replace(conclusion, cause_class=cause, notes=notes)


def with_cleanup(conclusion: Conclusion, records: Sequence[FaultRecord]) -> Conclusion:
    """The conclusion of a log without a root fault whose kernel log only follows something else."""
    if not records or not all(is_kernel_log(record) for record in records):
        return conclusion
    notes = [f"line {one.line}: {_said(one)}" for one in records[:_SHOWN]]
    notes.extend(_more(len(records)))
    return msgspec.structs.replace(
        conclusion,
        statement="No fault found: the kernel log only has messages that are no fault by themselves.",
        notes=notes,
    )


def kernel_log_steps(records: Sequence[FaultRecord], root: FaultRecord | None) -> list[NextStep]:
    """Commands that tell what the texts do not: whose GPU a message is about, what a clean-up followed."""
    if root is None:
        if not any(is_kernel_log(record) for record in records):
            return []
        why = "the kernel log alone has no fault: the program's own log says whether it failed, and of what"
        return [NextStep(command="trace-analyze <log of the program> <this kernel log>", why=why)]
    if not is_kernel_log(root) and own_verdicts(records, root):
        why = (
            f"its GPU Recovery Action is the driver's verdict; what stands before {VERDICT} in dmesg says why"
        )
        return [NextStep(command="nvidia-smi -q", why=why)]
    unlinked = unlinked_hardware(records, root)
    if not unlinked:
        return []
    names = ", ".join(dict.fromkeys(_named(one) for one in unlinked[:_SHOWN]))
    health = f"errors of each GPU: whether the one that the program used is the one of {names}"
    processes = (
        "which process uses which GPU (PCI address), to compare with the kernel log, once it runs again"
    )
    return [NextStep(command=_HEALTH, why=health), NextStep(command=_PROCESSES, why=processes)]


def unlinked_hardware(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """Messages of failed hardware that nothing in the texts links with the error of a program."""
    if is_kernel_log(root):
        return []
    links = Links(records, root)
    logged = [one for one in records if is_kernel_log(one) and is_failing_hardware(one, records)]
    return [one for one in logged if links.of(one).linked is not True]


def place_of(record: FaultRecord, root: FaultRecord | None) -> str:
    """``line 12``; in another input than the root's ``input 2:12``: plain lines are those of its input."""
    if root is None or record.source == root.source:
        return f"line {record.line}"
    return f"input {record.source + 1}:{record.line}"


def places_of(records: Sequence[FaultRecord], root: FaultRecord) -> str:
    """``line 1, line 2, line 3 and 10 more``."""
    told = ", ".join(place_of(one, root) for one in records[:_SHOWN])
    return f"{told} and {len(records) - _SHOWN} more" if len(records) > _SHOWN else told


def _more(count: int) -> list[str]:
    return [f"and {count - _SHOWN} more in the kernel log"] if count > _SHOWN else []


def _named(record: FaultRecord) -> str:
    on = f" on {record.device}" if record.device else ""
    return f"{record.name or 'page fault'}{on}"


def _of_hardware(hardware: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    notes = [
        f"{place_of(one, root)}: {one.name}, read as hardware ({one.label or one.text})"
        for one in hardware[:_SHOWN]
    ]
    if len(hardware) > _SHOWN:
        notes.append(f"and {len(hardware) - _SHOWN} more in the kernel log, read as hardware too")
    return notes


def _of_verdict(records: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    own = own_verdicts(records, root)
    return [f"{place_of(own[-1], root)}: {VERDICT}, {_said_of_verdict(own[-1])}"] if own else []


def own_verdicts(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """What the driver asks for, where it is about the GPU of the fault; the last one counts."""
    links = Links(records, root)
    return [one for one in records if one.name == VERDICT and _is_of(one, root, links)]


def _is_of(record: FaultRecord, root: FaultRecord, links: Links) -> bool:
    if is_kernel_log(root):
        return record is root or (record.device is not None and record.device == root.device)
    return links.of(record).linked is True


def _said_of_verdict(record: FaultRecord) -> str:
    asked = record.text.rpartition("(")[2].partition(")")[0]
    return f"the driver's verdict on GPU {record.device}: {asked or record.text}"


def _of_unlinked(records: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    """Hardware messages that may be of another GPU or another day: said, not accused."""
    links = Links(records, root)
    unlinked = unlinked_hardware(records, root)
    notes = []
    for one in unlinked[:_SHOWN]:
        row, link = by_name(one.name), links.of(one)
        what = f"{place_of(one, root)}: {_named(one)}{f', {row.meaning}' if row else ''}"
        if link.linked is False:
            told = "that is not joined with this fault"
            notes.append(f"the kernel log has a hardware message ({what}) {told}: {link.why}")
        else:
            notes.append(
                f"the kernel log has a hardware message ({what}) that nothing links with this error "
                f"({link.why}): compare pid and GPU (nvidia-smi --query-compute-apps=pid,gpu_bus_id "
                "--format=csv)"
            )
    if len(unlinked) > _SHOWN:
        notes.append(
            f"and {len(unlinked) - _SHOWN} more hardware messages that are not joined with this error"
        )
    return notes


def _of_other_hardware(
    records: Sequence[FaultRecord], root: FaultRecord, hardware: Sequence[FaultRecord]
) -> list[str]:
    """Messages of hardware that can be of this event and still do not explain it: corrected errors."""
    told = {id(one) for one in (*hardware, *unlinked_hardware(records, root))}
    other = [one for one in records if is_kernel_log(one) and reading_of(one) == "hardware"]
    other = [one for one in other if id(one) not in told and not (hardware and one.name == "Xid 45")]
    if not other:
        return []
    names = ", ".join(dict.fromkeys(_named(one) for one in other))
    return [f"hardware messages that do not explain this fault: {names} ({places_of(other, root)})"]


def _of_software(logged: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    """How the kernel log reads as a whole where no message is of hardware (formats.md 3.20)."""
    if any(reading_of(record) == "hardware" for record in logged):
        return []
    if not any(reading_of(record) == "software" for record in logged):
        return []
    names = ", ".join(dict.fromkeys(record.name or "page fault" for record in logged))
    told = "speaks for software: no message of memory, link or firmware errors"
    note = f"the kernel log ({names}) {told} ({places_of(logged, root)})"
    processes = {record.process for record in logged if "pid=" in record.process}
    if is_kernel_log(root) and len(processes) > 1:
        return [note, f"{len(processes)} processes had faults; each is a failure of its own"]
    return [note]


def _is_unclear(logged: Sequence[FaultRecord], root: FaultRecord, records: Sequence[FaultRecord]) -> bool:
    """Software is what an error is taken for where nothing is told; here the driver tells something else."""
    if is_kernel_log(root):
        return root.vendor == "nvidia" and (by_name(root.name) is None or root.name == _PUSH_BUFFER)
    software = any(reading_of(one) == "software" for one in logged)
    return is_explainable(root) and not software and bool(own_verdicts(records, root))


def _said(record: FaultRecord) -> str:
    if record.name == "Xid 45":
        return (
            f"Xid 45: the driver removed the channels of {record.process}, which ended (Ctrl-C, a kill, or "
            "an error that its own log tells)"
        )
    if record.name == VERDICT:
        return f"{VERDICT}: {_said_of_verdict(record)}; what led to it is not in this log"
    return f"{_named(record)}: it was not fatal, the message says"
