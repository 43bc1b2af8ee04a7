"""What to run next about messages of the kernel driver beside the fault of a program."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.driver_log import VERDICT
from analyzer.incident.driver_messages import is_of_driver, is_of_driver_log
from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.verdict.driver_notes import named_on, own_verdicts, unlinked_hardware

_SHOWN = 3
_PROCESSES = "nvidia-smi --query-compute-apps=pid,gpu_bus_id,process_name --format=csv"
_HEALTH = "nvidia-smi -q -d ECC,ROW_REMAPPER"
_AMD_HEALTH = "amd-smi metric --ecc   # older: rocm-smi --showrasinfo all"
_COUNTED = frozenset({"ecc_error", "device_lost", "hang_timeout"})


def kernel_log_steps(records: Sequence[FaultRecord], root: FaultRecord | None) -> list[NextStep]:
    """Commands that tell what the texts do not: whose GPU a message is about, what a clean-up followed."""
    if root is None:
        if not any(is_of_driver_log(record) for record in records):
            return []
        why = "the driver log alone has no fault: the program's own log says whether it failed, and of what"
        return [NextStep(command="trace-analyze <log of the program> <this driver log>", why=why)]
    if not is_of_driver(root) and own_verdicts(records, root):
        why = (
            f"its GPU Recovery Action is the driver's verdict; what stands before {VERDICT} in dmesg says why"
        )
        return [NextStep(command="nvidia-smi -q", why=why)]
    if is_of_driver(root) and root.vendor == "amd":
        why = "error counters of each GPU: whether the memory or a unit of this one fails"
        return [NextStep(command=_AMD_HEALTH, why=why)] if root.kind in _COUNTED else []
    unlinked = unlinked_hardware(records, root)
    if not unlinked:
        return []
    names = ", ".join(dict.fromkeys(named_on(one) for one in unlinked[:_SHOWN]))
    if unlinked[0].vendor == "amd":
        why = f"whether the GPU that the program used is the one of {names}"
        return [NextStep(command=_AMD_HEALTH, why=why)]
    health = f"errors of each GPU: whether the one that the program used is the one of {names}"
    processes = (
        "which process uses which GPU (PCI address), to compare with the driver log, once it runs again"
    )
    return [NextStep(command=_HEALTH, why=health), NextStep(command=_PROCESSES, why=processes)]
