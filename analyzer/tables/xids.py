"""What the Xid numbers of NVIDIA's kernel driver mean (formats.md 3.20), as data.

``software``: an application's own fault. ``hardware``: the board, its links or its firmware. ``secondary``:
the driver cleans up after something else, so the line says nothing about the cause. Newer numbers as in
NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

import re
from typing import Literal

from analyzer.numbers import natural
from analyzer.schema import FaultKind, Value

XidReading = Literal["software", "hardware", "secondary"]


class Xid(Value):
    """One Xid number. ``name``: the driver's own word; ``action``: what an operator does.

    ``fails``: false = errors that were corrected, or a repair: they make no call of a program fail.
    ``alone``: false = it is printed where nothing failed too (Ctrl-C, a kill), or sums up other messages.
    """

    number: int
    name: str
    reading: XidReading
    kind: FaultKind
    meaning: str
    action: str
    fails: bool = True
    alone: bool = True


_DEBUG = "debug the application: the GPU is sound"
_LOOK = "look at the fault before it"
_RESET = "reset the GPU; report it if it comes back"
_DRAIN = "drain the node; nvidia-smi -q -d ECC,ROW_REMAPPER; reset the GPU"


def _xid(  # noqa: PLR0917  (the columns of the table)
    number: int,
    name: str,
    reading: XidReading,
    kind: FaultKind,
    meaning: str,
    action: str,
    *,
    fails: bool = True,
    alone: bool = True,
) -> Xid:
    return Xid(
        number=number,
        name=name,
        reading=reading,
        kind=kind,
        meaning=meaning,
        action=action,
        fails=fails,
        alone=alone,
    )


XIDS: tuple[Xid, ...] = (
    _xid(8, "FIFO_IDLE_TIMEOUT", "software", "hang_timeout", "the GPU stopped processing", _DEBUG),
    _xid(13, "GR_EXCEPTION", "software", "launch_failure", "an exception in a kernel", _DEBUG),
    _xid(31, "MMU_FAULT", "software", "illegal_address", "access to an address that is not mapped", _DEBUG),
    _xid(32, "PBDMA_ERROR", "secondary", "unknown", "a bad push buffer, often after Xid 13", _LOOK),
    _xid(43, "RESET_CHANNEL", "secondary", "unknown", "channel reset after a fault; GPU sound", _LOOK),
    _xid(
        45,
        "PREEMPTIVE_REMOVAL",
        "secondary",
        "unknown",
        "channels removed at the end of a process",
        _LOOK,
        alone=False,
    ),
    _xid(48, "GPU_ECC_DBE", "hardware", "ecc_error", "double-bit memory error", _DRAIN),
    _xid(61, "PMU_BREAKPOINT", "hardware", "device_lost", "firmware stopped", _RESET),
    _xid(62, "PMU_HALT", "hardware", "device_lost", "firmware halted", _RESET),
    _xid(
        63,
        "ROW_REMAP",
        "hardware",
        "ecc_error",
        "a bad memory row is retired or remapped",
        _DRAIN,
        fails=False,
    ),
    _xid(64, "ROW_REMAP_FAILURE", "hardware", "ecc_error", "a bad memory row could not be remapped", _DRAIN),
    _xid(69, "GR_CLASS_ERROR", "secondary", "unknown", "a bad command, often after Xid 13", _LOOK),
    _xid(74, "NVLINK_ERROR", "hardware", "device_lost", "NVLink error", "check the fabric; reset the GPU"),
    _xid(79, "FALLEN_OFF_THE_BUS", "hardware", "device_lost", "the GPU is gone", "power, PCIe, then reboot"),
    _xid(92, "EXCESSIVE_SBE", "hardware", "ecc_error", "many corrected memory errors", _DRAIN, fails=False),
    _xid(94, "CONTAINED_ERROR", "hardware", "ecc_error", "memory error, kept to one application", _DRAIN),
    _xid(95, "UNCONTAINED_ERROR", "hardware", "ecc_error", "memory error, can hit all applications", _DRAIN),
    _xid(109, "CTX_SWITCH_TIMEOUT", "software", "hang_timeout", "a kernel did not give way", _DEBUG),
    _xid(110, "SEC_FAULT", "hardware", "device_lost", "an error in the GPU's security processor", _RESET),
    _xid(119, "GSP_RPC_TIMEOUT", "hardware", "device_lost", "the GPU's firmware does not answer", _RESET),
    _xid(120, "GSP_ERROR", "hardware", "device_lost", "an error in the GPU's firmware", _RESET),
    _xid(
        121,
        "C2C_ERROR",
        "hardware",
        "device_lost",
        "corrected errors of the link to the host processor",
        "reset the GPU when it is free: the link is trained anew",
        fails=False,
    ),
    _xid(
        136,
        "LINK_TRAINING_FAILED",
        "hardware",
        "device_lost",
        "an NVLink did not come up",
        "check the fabric",
    ),
    _xid(137, "NVLINK_PRIV_ERR", "software", "illegal_address", "a bad access over NVLink", _DEBUG),
    _xid(140, "ECC_ERROR_ESCAPE", "hardware", "ecc_error", "unrecovered memory error", _DRAIN),
    _xid(143, "GPU_INIT_ERROR", "hardware", "device_lost", "the GPU could not be initialised", _RESET),
    *(
        _xid(number, "NVLINK_UNIT_ERROR", "hardware", "device_lost", "NVLink error", "check the fabric")
        for number in range(144, 151)
    ),
    _xid(
        154,
        "RECOVERY_ACTION",
        "secondary",
        "unknown",
        "the driver's verdict on the GPU, after other messages",
        "do what it says",
        alone=False,
    ),
    _xid(156, "RESOURCE_RETIREMENT", "hardware", "ecc_error", "a bad part is retired", _RESET, fails=False),
    _xid(
        157,
        "RESOURCE_RETIREMENT_FAILURE",
        "hardware",
        "ecc_error",
        "no spare part is left for a bad one",
        _DRAIN,
        fails=False,
    ),
    _xid(158, "GPU_FATAL_TIMEOUT", "hardware", "device_lost", "the GPU does not answer", _RESET),
    _xid(
        167,
        "PCIE_FATAL_TIMEOUT",
        "hardware",
        "device_lost",
        "no answer over PCIe",
        "power, PCIe, then reboot",
    ),
    _xid(171, "DRAM_ERROR", "hardware", "ecc_error", "uncorrectable error in device memory", _DRAIN),
    _xid(172, "SRAM_ERROR", "hardware", "ecc_error", "uncorrectable error in a cache or register", _DRAIN),
)
_SWITCH = Xid(
    number=0,
    name="SXID",
    reading="hardware",
    kind="device_lost",
    meaning="NVSwitch error",
    action="check the fabric manager and the switch; reset the GPUs of this switch",
)
RING_TIMEOUT, GPU_RESET, GPU_LOST = "ring timeout", "GPU reset", "GPU is lost"
AMD_NAMES = frozenset({RING_TIMEOUT, GPU_RESET})  # a hang: of a kernel, the firmware or the board
_NAMED = {
    GPU_RESET: Xid(
        number=0,
        name="GPU_RESET",
        reading="secondary",
        kind="unknown",
        meaning="the driver reset the GPU after something else",
        action=_LOOK,
    ),
    GPU_LOST: Xid(
        number=79,
        name="FALLEN_OFF_THE_BUS",
        reading="hardware",
        kind="device_lost",
        meaning="the GPU is gone",
        action="power, PCIe, then reboot",
    ),
}
_BY_NUMBER = {row.number: row for row in XIDS}
_PREVIOUS = re.compile(r"caused by previous Xid ([0-9]{1,4})\b")
_NVLINK_UNITS = range(144, 151)
_TEXT_KINDS: tuple[tuple[str, FaultKind], ...] = (
    ("illegal instruction", "illegal_instruction"),
    ("misaligned address", "misaligned_address"),
    ("out of range address", "illegal_address"),
    ("mmu fault", "illegal_address"),
    ("mmu nack", "illegal_address"),
    ("fault_pde", "illegal_address"),
    ("fault_pte", "illegal_address"),
)


def by_number(number: int) -> Xid | None:
    """The row of a number; null = not in the table."""
    return _BY_NUMBER.get(number)


def by_name(name: str | None) -> Xid | None:
    """The row of ``Xid 31`` or ``GPU reset``, the names that records carry; null = another name."""
    word, _, number = (name or "").partition(" ")
    if word == "SXid":
        return _SWITCH
    if name in _NAMED:
        return _NAMED[name]
    known = natural(number) if word == "Xid" else None
    return None if known is None else by_number(known)


def bus_of(device: str) -> str:
    """``3b:00`` of ``0000:3b:00`` and ``0000:3b:00.0``: what all forms of a PCI address have in common."""
    return ":".join(device.lower().partition(".")[0].split(":")[-2:])


def previous_xid(text: str) -> Xid | None:
    """The row of the Xid that a clean-up names as its cause; null = none, or one that tells nothing."""
    found = _PREVIOUS.search(text)
    number = natural(found.group(1)) if found else None
    row = None if number is None else by_number(number)
    return row if row is not None and row.reading != "secondary" else None


def kind_of(row: Xid | None, text: str) -> FaultKind:
    """What failed: the words of an exception say it best (``Misaligned Address``).

    NVLink 5 says of each event whether it was fatal; one that was not is no failure.
    """
    row = previous_xid(text) or row
    if row is None:
        return "unknown"
    lowered = text.lower()
    if row.number in _NVLINK_UNITS and "nonfatal" in lowered:
        return "unknown"
    if row.number not in {13, 31}:
        return row.kind
    return next((kind for word, kind in _TEXT_KINDS if word in lowered), row.kind)
