"""A prompt that goes on over several lines is not the server's own text; a crash behind it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze

HEAD = 'INFO 11-21 10:22:34 [logger.py:43] Received request cmpl-2: prompt: "explain:'
QUOTED = [
    "RuntimeError: CUDA error: device-side assert triggered",
    (
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below"
        " might be incorrect."
    ),
]
TAIL = 'thanks", params: SamplingParams(n=1)'
CRASH = [
    "Traceback (most recent call last):",
    '  File "/srv/app/serve.py", line 7, in step',
    "    out = model(ids)",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
]


def _roots(folder: Path, *lines: str) -> list[tuple[str, int]]:
    log = folder / "serve.log"
    log.write_text("\n".join(lines) + "\n")
    result = analyze([str(log)])
    counts = result.accounting
    parts = counts.parsed + counts.continuation + counts.ignored + counts.unrecognised
    assert parts == counts.total_lines == len(lines)
    return [(fault.kind, fault.line) for fault in result.faults if fault.role == "root"]


@pytest.mark.parametrize("tail", [TAIL, 'thanks"', 'thanks")'])
def test_a_prompt_of_several_lines_is_no_error(tmp_path: Path, tail: str) -> None:
    assert _roots(tmp_path, HEAD, *QUOTED, tail, "INFO 11-21 10:22:35 [api.py:1] 200 OK") == []


def test_the_crash_behind_the_prompt_is_the_fault(tmp_path: Path) -> None:
    assert _roots(tmp_path, HEAD, *QUOTED, TAIL, *CRASH) == [("illegal_address", 8)]


def test_a_prompt_whose_end_is_not_in_the_log_hides_nothing(tmp_path: Path) -> None:
    """The record was cut, or its writer died: what stands below may be the crash itself."""
    assert _roots(tmp_path, HEAD, *CRASH) == [("illegal_address", 5)]


def test_a_closed_prompt_hides_nothing_below_it(tmp_path: Path) -> None:
    head = 'INFO 11-21 10:22:34 [logger.py:43] Received request cmpl-2: prompt: "hello", params: X(n=1)'
    assert _roots(tmp_path, head, *CRASH) == [("illegal_address", 5)]


def test_another_record_ends_the_search(tmp_path: Path) -> None:
    """A logger's next line is no part of the string, so an error below it is its own."""
    between = "ERROR 11-21 10:22:36 [core.py:9] EngineCore failed"
    assert _roots(tmp_path, HEAD, between, *CRASH, TAIL) == [("illegal_address", 6)]


def test_a_thousand_lines_without_a_head_take_no_time(tmp_path: Path) -> None:
    asserts = [
        f"/k.cu:1: gather: block: [0,0,0], thread: [{number},0,0] Assertion `i < n` failed."
        for number in range(1000)
    ]
    assert _roots(tmp_path, *asserts) == [("device_assert", 1)]


def test_the_head_of_untagged_lines_can_carry_a_tag(tmp_path: Path) -> None:
    """A launcher tags the first line of what is written at once."""
    log = tmp_path / "serve.log"
    head = "(APIServer pid=7) INFO 11-21 10:22:30 [logger.py:43] Received request c1: prompt: 'fix this:"
    body = ["Traceback (most recent call last):", "RuntimeError: CUDA error: device-side assert triggered"]
    log.write_text("\n".join([head, *body, "thanks', params: SamplingParams(n=1)", ""]))
    assert analyze([str(log)]).faults == []
    log.write_text("\n".join(["(APIServer pid=7) INFO 11-21 10:22:30 [logger.py:43] ready", *body, ""]))
    assert [fault.role for fault in analyze([str(log)]).faults] == ["root"]
