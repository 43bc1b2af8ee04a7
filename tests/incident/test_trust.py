"""Whether the place of a report may be believed."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, KernelState
from analyzer.schema import Modes
from tests.faults_made import fault
from tests.incident.records import decide_trust

BLOCKING = Modes(launch_blocking=True)
SYNC = Modes(device_sync_mode=True)


def trust(record: FaultRecord, modes: Modes | None = None, *, after_sticky: bool = False) -> str:
    return decide_trust(record, after_sticky=after_sticky, modes=modes or Modes()).trust


@pytest.mark.parametrize("site", ["launch", "sync", "unknown"])
@pytest.mark.parametrize("code", [700, 702, 714, 716, 717, 718, 719])
def test_device_fault_is_met_late(site: str, code: int) -> None:
    """The host learns of it at the next call that checks."""
    assert trust(fault(site=site, code=code)) == "late"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, "invalid_argument"),
        (2, "out_of_memory"),
        (9, "invalid_configuration"),
        (98, "invalid_argument"),
        (209, "no_kernel_image"),
        (701, "too_many_resources"),
    ],
)
def test_error_of_the_launch_itself_is_exact_unless_a_sticky_one_precedes(code: int, kind: str) -> None:
    record = fault(site="launch", code=code, kind=kind)
    assert trust(record) == "exact"
    assert trust(record, after_sticky=True) == "late"


def test_serialised_launch_names_the_op() -> None:
    """``failed calling ... on device`` is printed by a launch that waits (observed.md 14)."""
    assert trust(fault(site="launch_serialised")) == "exact"
    assert trust(fault(site="launch_serialised"), after_sticky=True) == "late"


def test_device_witness_is_exact_even_behind_other_errors() -> None:
    record = fault(site="device", code=None, state=KernelState(kernel="k"))
    assert trust(record) == "exact"
    assert trust(record, after_sticky=True) == "exact"


def test_missing_hint_of_max_proves_nothing() -> None:
    """Switched on too late, sync mode removes the hint though the report is late (observed.md 20)."""
    record = fault(site="launch", async_hint=None, kernel="__softmax")
    assert trust(record, SYNC) == "late"


def test_launch_blocking_without_the_sentence_is_exact() -> None:
    """PyTorch leaves the sentence out under launch blocking (observed.md 21)."""
    assert trust(fault(site="launch", async_hint=False), BLOCKING) == "exact"


@pytest.mark.parametrize(
    ("site", "hint", "modes"),
    [
        ("launch", True, BLOCKING),
        ("launch", None, BLOCKING),
        ("sync", False, BLOCKING),
        ("launch", False, Modes()),
        ("launch", False, Modes(launch_blocking=False)),
    ],
)
def test_launch_blocking_needs_switch_and_missing_sentence_and_a_launch(
    site: str, hint: bool | None, modes: Modes
) -> None:
    assert trust(fault(site=site, async_hint=hint), modes) == "late"


@pytest.mark.parametrize("kind", ["nan", "kernel_raised", "configuration", "host_segfault"])
def test_what_the_host_itself_finds_is_exact(kind: str) -> None:
    assert trust(fault(kind=kind, site="host", code=None)) == "exact"


def test_every_decision_has_a_reason() -> None:
    for site in ("device", "launch", "launch_serialised", "sync", "host", "unknown"):
        for sticky in (False, True):
            assert decide_trust(fault(site=site), after_sticky=sticky, modes=Modes()).reason


def test_the_end_of_a_capture_says_itself_that_another_error_came_before() -> None:
    for site in ("launch", "sync", "host"):
        assert trust(fault(site=site, code=901, kind="invalid_argument")) == "late"
    assert trust(fault(site="launch", code=900, kind="invalid_argument")) == "exact"
