"""The kinds of faults with what is true of each, as data (formats.md 1, 2).

A rule asks for a trait; no rule lists kinds by itself. A new kind is one row here and one word in
``vocabulary.FaultKind``.
"""

from __future__ import annotations

from typing import Literal

from analyzer.vocabulary import CauseClass, FaultKind, Value

Trait = Literal[
    "sticky",  # the context is lost: later calls of the process fail too
    "address",  # of memory, bad
    "access",  # device code did something wrong with an address, an instruction or a stack
    "code",  # accuses code: no answer of a GPU that fails
    "other_code",  # reported with a code of its own, never with that of an assert
    "hardware",  # the board, its memory or its links failed
    "death",  # a process ended by a signal, which says nothing about its cause
    "peer",  # waiting for another process, or having lost it
    "at_call",  # returned by the very call that causes it
    "of_launch",  # only a launch returns it; the runtime keeps it until somebody asks
    "check",  # a check that fired before anything failed: explains what follows
]


class Kind(Value):
    """One kind. ``words``: as a person says it; ``cause_class``: unless something else is told."""

    name: FaultKind
    words: str
    cause_class: CauseClass
    traits: frozenset[Trait]


def _kind(name: FaultKind, words: str, cause_class: CauseClass, *traits: Trait) -> Kind:
    return Kind(name=name, words=words, cause_class=cause_class, traits=frozenset(traits))


# fmt: off
KINDS: tuple[Kind, ...] = (
    _kind("illegal_address", "illegal memory access", "software",
          "sticky", "access", "address", "code", "other_code"),
    _kind("misaligned_address", "misaligned memory access", "software",
          "sticky", "access", "address", "code", "other_code"),
    _kind("invalid_address_space", "access to a wrong address space", "software",
          "sticky", "access", "address", "code", "other_code"),
    _kind("launch_failure", "unspecified launch failure", "software", "sticky", "access"),
    _kind("illegal_instruction", "illegal instruction", "software", "sticky", "access", "code", "other_code"),
    _kind("device_assert", "device-side assert", "software", "sticky", "code"),
    _kind("ecc_error", "ecc error", "hardware", "sticky", "hardware", "other_code"),
    _kind("device_lost", "device lost", "hardware", "sticky", "hardware", "other_code"),
    _kind("out_of_memory", "out-of-memory error", "memory", "at_call"),
    _kind("nan", "NaN/Inf", "software", "at_call", "check"),
    _kind("input_check", "input check", "software", "at_call", "check"),
    _kind("invalid_argument", "invalid argument", "software", "at_call", "of_launch"),
    _kind("invalid_configuration", "invalid configuration", "software", "at_call", "of_launch"),
    _kind("no_kernel_image", "no kernel image", "configuration", "at_call", "of_launch"),
    _kind("too_many_resources", "too many resources", "software", "at_call", "of_launch"),
    _kind("library_status", "error status of a library", "software"),
    _kind("kernel_raised", "error raised by the op's host code", "software", "at_call"),
    _kind("configuration", "configuration error", "configuration", "at_call"),
    _kind("host_segfault", "host segmentation fault", "software", "at_call", "death"),
    _kind("host_abort", "host abort", "software", "at_call", "death"),
    _kind("hang_timeout", "hang timeout", "software", "peer"),
    _kind("peer_lost", "peer lost", "peer", "peer"),
    _kind("unknown", "error", "software"),
)
# fmt: on

BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}


def having(*traits: Trait) -> frozenset[FaultKind]:
    """The kinds that have all of these traits."""
    return frozenset(kind.name for kind in KINDS if kind.traits.issuperset(traits))


STICKY = having("sticky")
ACCESS = having("access")
OF_CODE = having("code")
OTHER_CODES = having("other_code")
HARDWARE = having("hardware")
DEATHS = having("death")
PEERS = having("peer")
AT_CALL = having("at_call")
OF_LAUNCH = having("of_launch")
CHECKS = having("check")
BAD_ADDRESS = having("address")
