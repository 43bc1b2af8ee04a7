"""What SGLang says of its children (formats.md 3.12)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.sglang import WITNESS
from tests.witnesses.conftest import Reader


@pytest.mark.parametrize(
    ("text", "kind", "pid", "relayed"),
    [
        (
            "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
            "hang_timeout",
            None,
            False,
        ),
        ("Watchdog timeout (self.watchdog_timeout=300)", "hang_timeout", None, False),
        (
            "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
            "peer_lost",
            None,
            True,
        ),
        (
            "Received sigquit from a child process. It usually means the child failed.",
            "peer_lost",
            None,
            True,
        ),
        (
            "Subprocess scheduler_0 (pid=4410) crashed with exit code -9. Triggering SIGQUIT",
            "host_abort",
            4410,
            True,
        ),
        (
            "Subprocess scheduler_0 (pid=4410) crashed with exit code 1. Triggering SIGQUIT",
            "unknown",
            4410,
            True,
        ),
    ],
)
def test_old_and_new_words_for_a_child_that_failed(
    read: Reader, text: str, kind: str, pid: int | None, relayed: bool
) -> None:
    reading = read(WITNESS, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.pid, fault.relayed) == (kind, pid, relayed)
    assert not reading.losses


def test_a_worker_of_vllm_is_none_of_its_children(read: Reader) -> None:
    """VLLM's own witness reads the same words."""
    assert not read(WITNESS, "WorkerProc hit an exception: Traceback (most recent call last):").records
