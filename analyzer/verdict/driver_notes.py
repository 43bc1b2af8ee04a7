"""What the conclusion says about the kernel log: hardware, what nothing links with the error, clean-up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.incident.driver_links import Links
from analyzer.incident.driver_log import (
    VERDICT,
    is_cause,
    is_joined_by_time,
    joined_hardware,
)
from analyzer.incident.driver_messages import (
    companions_of,
    is_failing_hardware,
    is_of_driver,
    is_of_driver_log,
    reading_of,
)
from analyzer.incident.host_kills import is_host_kill, program_of, role_of_kill, victim_of
from analyzer.model import FaultRecord
from analyzer.schema import Conclusion
from analyzer.tables.xids import AMD_NAMES, by_name

_SHOWN = 3
_NAMES_SHOWN = 8
_COMPARE = {
    "nvidia": "compare pid and GPU (nvidia-smi --query-compute-apps=pid,gpu_bus_id --format=csv)",
    "amd": "compare pid and GPU (amd-smi process)",
}
_BY_TIME = "only the time joins the hardware message with the error of the program"


def with_kernel_log(conclusion: Conclusion, records: Sequence[FaultRecord], root: FaultRecord) -> Conclusion:
    """Add what the kernel log says about the root fault.

    A hardware message that nothing links with the fault is told, and blamed for nothing.
    """
    logged = [record for record in records if is_of_driver(record)]
    conclusion = msgspec.structs.replace(conclusion, notes=[*conclusion.notes, *_of_kills(records, root)])
    if not logged:
        return conclusion
    hardware = joined_hardware(records, root)
    notes = [*conclusion.notes, *_of_hardware(hardware, root), *_of_verdict(records, root)]
    notes.extend(_of_unlinked(records, root))
    notes.extend(_of_other_hardware(records, root, hardware))
    notes.extend(_of_software(logged, root))
    if is_joined_by_time(records, root):
        notes.append(f"{_BY_TIME}: {_COMPARE[root.vendor or 'nvidia']}")
    return msgspec.structs.replace(conclusion, notes=notes)


def with_cleanup(conclusion: Conclusion, records: Sequence[FaultRecord]) -> Conclusion:
    """The conclusion of a log without a root fault whose kernel log only follows something else."""
    told = [_of_kill(one, None) for one in records if is_host_kill(one)][:_SHOWN]
    if not records or not all(is_of_driver_log(record) for record in records):
        return msgspec.structs.replace(conclusion, notes=[*conclusion.notes, *told])
    notes = [f"line {one.line}: {_said(one)}" for one in records[:_SHOWN]]
    notes.extend(_more(len(records)))
    only = "only has messages that are no fault by themselves"
    if len(told) == len(records[:_SHOWN]):
        only = "tells of a kill for memory, and nothing says that it hit this program"
    return msgspec.structs.replace(
        conclusion, statement=f"No fault found: the kernel log {only}.", notes=notes
    )


def unlinked_hardware(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """Messages of failed hardware that nothing in the texts links with the error of a program for certain."""
    if is_of_driver(root):
        return []
    links, companions = Links(records, root), companions_of(records)
    logged = [one for one in records if is_of_driver(one) and is_failing_hardware(one, companions)]
    return [one for one in logged if not is_cause(one, companions, links) and not _is_linked(one, links)]


def _is_linked(record: FaultRecord, links: Links) -> bool:
    link = links.of(record)
    return bool(link.linked) and not link.by_time


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


def named_on(record: FaultRecord) -> str:
    """``Xid 79 on 0000:9b:00``."""
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
    if is_of_driver(root):
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
        what = f"{place_of(one, root)}: {named_on(one)}{f', {row.meaning}' if row else ''}"
        if link.linked is False:
            apart = "that is not joined with this fault"
            notes.append(f"the kernel log has a hardware message ({what}) {apart}: {link.why}")
        else:
            but = "nothing links with this error"
            if link.near:
                but = "came at the same time, and nothing else links with this error"
            why = "a time proves no link" if link.by_time else link.why
            notes.append(
                f"the kernel log has a hardware message ({what}) that {but} ({why}): "
                f"{_COMPARE[one.vendor or 'nvidia']}"
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
    other = [one for one in records if is_of_driver(one) and reading_of(one) == "hardware"]
    other = [one for one in other if id(one) not in told and not (hardware and one.name == "Xid 45")]
    if not other:
        return []
    names = list(dict.fromkeys(named_on(one) for one in other))
    shown = ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")
    return [f"hardware messages that do not explain this fault: {shown} ({places_of(other, root)})"]


def _of_software(logged: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    """How the kernel log reads as a whole where no message is of hardware (formats.md 3.20)."""
    if any(reading_of(record) == "hardware" for record in logged):
        return []
    if not any(reading_of(record) == "software" for record in logged):
        return []
    if any(record.name in AMD_NAMES for record in logged):
        return ["a hang is told without its cause: a kernel that does not end, the firmware or the board"]
    names = ", ".join(dict.fromkeys(record.name or "page fault" for record in logged))
    told = "speaks for software: no message of memory, link or firmware errors"
    note = f"the kernel log ({names}) {told} ({places_of(logged, root)})"
    processes = {record.process for record in logged if "pid=" in record.process}
    if is_of_driver(root) and len(processes) > 1:
        return [note, f"{len(processes)} processes had faults; each is a failure of its own"]
    return [note]


def _of_kills(records: Sequence[FaultRecord], root: FaultRecord) -> list[str]:
    """Kills for memory that are not the root: said, not accused."""
    program = program_of(records)
    kills = [one for one in records if is_host_kill(one) and one is not root]
    kills = [one for one in kills if role_of_kill(one, root, program)[0] == "bystander"]
    notes = [_of_kill(one, root) for one in kills[:_SHOWN]]
    return [*notes, f"and {len(kills) - _SHOWN} more kills for memory"] if len(kills) > _SHOWN else notes


def _of_kill(kill: FaultRecord, root: FaultRecord | None) -> str:
    victim = victim_of(kill)
    return f"{place_of(kill, root)}: {_said_of_kill(victim.words if victim else 'a process')}"


def _said_of_kill(who: str) -> str:
    return f"the kernel killed {who} for memory of the host, and nothing here says that this program is it"


def _said(record: FaultRecord) -> str:
    if (victim := victim_of(record)) is not None:
        return _said_of_kill(victim.words)
    if record.name == "Xid 45":
        return (
            f"Xid 45: the driver removed the channels of {record.process}, which ended (Ctrl-C, a kill, or "
            "an error that its own log tells)"
        )
    if record.name == VERDICT:
        return f"{VERDICT}: {_said_of_verdict(record)}; what led to it is not in this log"
    return f"{named_on(record)}: it was not fatal, the message says"
