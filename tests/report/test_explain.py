"""``--explain``: which rule decided what."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from analyzer.incident.incident import Decision
from analyzer.pipeline import Analysis, open_analysis
from analyzer.report.explain import render_explanation
from tests.samples import cases

SAMPLES = [
    "max_errors/oob_async",
    "aoti_printer/names_blocking",
    "aoti_printer/nan_cuda",
    "vllm/worker_tp1_first",
    "xid/bus_then_launch_failure",
    "xid/lone_xid45",
    "max_serve/worker_killed_for_memory",
    "process_death/oom_killer_exit_137",
    "server_start/torchrun_second_crash",
    "compute-sanitizer/handled_calls",
]
CHANGE = re.compile(r"    (\d+):(\d+)  #(\d+)  (role|trust): (?:\w+ -> )?(\w+); (.*?)(?: \[[0-9:, ]+\])?")


def explained(name: str) -> tuple[Analysis, str]:
    case = next(case for case in cases() if case.name == name)
    with chdir(case.folder), open_analysis(list(case.inputs), case.analysis_options(Path())) as found:
        return found, render_explanation(found.incident, found.result)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_last_decision_about_a_fault_is_its_role_and_its_trust(name: str) -> None:
    """Every role and trust of the result is the last decision that the explanation shows of it."""
    found, text = explained(name)
    last = {}
    for shown in text.splitlines():
        if (match := CHANGE.fullmatch(shown)) is not None:
            source, line, number, what, after, why = match.groups()
            last[int(number) - 1, what] = ((int(source) - 1, int(line)), after, why)
    numbers = found.incident.numbers
    assert len(numbers) == len(found.result.faults) > 0
    for number, fault in zip(numbers, found.result.faults, strict=True):
        place = (fault.input, fault.line)
        assert last[number, "role"] == (place, fault.role, fault.role_reason)
        assert last[number, "trust"] == (place, fault.trust, fault.trust_reason)
    assert {number for number, _ in last} == set(numbers)


def test_it_shows_borders_weights_and_the_conclusion() -> None:
    found, text = explained("max_errors/oob_async")
    window = found.result.window
    assert window is not None
    assert window.begin.reason in text
    assert window.end.reason in text
    for suspect in found.result.suspects:
        for reason in suspect.reasons:
            assert f"{reason.weight:+.2f}  {reason.evidence}: {reason.text} {reason.lines}" in text
    assert f"Conclusion: {found.result.conclusion.confidence}" in text


def test_a_log_without_a_fault_is_explained() -> None:
    _, text = explained("max_ops/clean_sync")
    assert "none: the inputs tell of no fault" in text
    assert "no fault is the root" in text


def test_every_decision_has_a_reason_and_a_rule() -> None:
    """No rule changes a fault without saying why."""
    decisions: list[Decision] = []
    for name in ("xid/bus_then_launch_failure", "max_serve/worker_killed_for_memory"):
        decisions += explained(name)[0].incident.decisions
    assert all(one.rule and one.why and one.after != one.before for one in decisions)


def test_one_view_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n")
    command = [sys.executable, "-m", "analyzer", str(log)]
    shown = subprocess.run([*command, "--explain"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "within_process" in shown.stdout
    both = subprocess.run(
        [*command, "--explain", "--timeline"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert both.returncode == 2
    assert "one view at a time" in both.stderr
