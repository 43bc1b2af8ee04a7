"""An error behind which the process answered requests is not what ended the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result

TRACE = [
    "Traceback (most recent call last):",
    '  File "/srv/app.py", line 10, in generate',
    "    y = model(x)",
]
OOM = [*TRACE, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."]
IMA = [*TRACE, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"]
OK = 'INFO:     127.0.0.1:50000 - "POST /v1/completions HTTP/1.1" 200 OK'
HEALTH = 'INFO:     127.0.0.1:50000 - "GET /health HTTP/1.1" 200 OK'
FAILED = 'INFO:     127.0.0.1:50000 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error'
END = "INFO:     Finished server process [12]"


def result(folder: Path, *lines: str) -> Result:
    path = folder / "input.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path)])


def roles(found: Result) -> list[str]:
    return [fault.role for fault in found.faults]


def test_server_that_answers_on_survived(tmp_path: Path) -> None:
    found = result(tmp_path, OK, *OOM, FAILED, "INFO:server:retry with batch 32 succeeded", OK, OK, OK, END)
    assert roles(found) == ["bystander"]
    assert found.faults[0].role_reason.endswith("it answered 3 requests afterwards")
    assert found.conclusion.confidence == "none"
    assert "survived" in found.conclusion.notes[0]


@pytest.mark.parametrize(
    "lines",
    [
        [OK, *OOM],
        [OK, *OOM, HEALTH, HEALTH, END],
        [*OOM, OK, FAILED],
        [*OOM, OK, "[RECORD] EXIT signal=SIGKILL code=137 duration_s=12.3"],
        [*OOM, OK, *OOM],
        [*OOM, "step 1 0.25", "step 2 0.25"],  # a buffer that was flushed at exit
        [*OOM, OK, *IMA],
        [*IMA, OK, OK],  # a lost context: others print, this one is dead
        [*OOM, "(APIServer pid=7) " + OK],  # another process
    ],
)
def test_root_stays_where_something_failed_afterwards_or_nothing_worked(
    tmp_path: Path, lines: list[str]
) -> None:
    assert "root" in roles(result(tmp_path, *lines))


def test_stamped_steps_show_that_the_program_went_on(tmp_path: Path) -> None:
    at = [f"2026-01-01T00:00:0{n}.000000000Z " for n in range(3)]
    lines = [at[0] + text for text in OOM]
    found = result(tmp_path, *lines, at[1] + "step 1 0.25", at[2] + "step 2 0.25")
    assert roles(found) == ["bystander"]
    assert found.faults[0].role_reason.endswith("it finished 2 steps afterwards")


def test_answers_of_uvicorn_end_the_text_of_an_exception(tmp_path: Path) -> None:
    lines = ["ERROR:    Exception in ASGI application", *TRACE, "RuntimeError: Response content longer"]
    assert not result(tmp_path, *lines, OK).faults
    assert result(tmp_path, *lines, HEALTH).faults
    (fault,) = result(tmp_path, *lines).faults
    assert fault.text == "RuntimeError: Response content longer"


def test_an_error_that_one_server_survived_is_not_why_another_one_crashed(tmp_path: Path) -> None:
    one, two = "(Server pid=7) ", "(Server pid=9) "
    lines = [*(one + line for line in OOM), one + OK, *(two + line for line in IMA)]
    assert roles(result(tmp_path, *lines)) == ["bystander", "root"]
    died = [*(one + line for line in OOM), *(two + line for line in IMA)]
    assert roles(result(tmp_path, *died)) == ["root", "bystander"]


def test_a_crash_before_a_restart_stays_the_root_if_the_new_run_survives_its_errors(tmp_path: Path) -> None:
    banner = "INFO 11-29 03:00:01 [api_server.py:1839] vLLM API server version 0.11.0"
    again = "(Server pid=7) "
    lines = [banner, *IMA, banner, *(again + line for line in OOM), again + OK]
    assert roles(result(tmp_path, *lines)) == ["root", "bystander"]


def test_a_builder_that_skips_a_tactic_for_memory_and_builds_the_engine_survived(tmp_path: Path) -> None:
    stamp = "[11/30/2026-09:00:00] [TRT] "
    where = "[defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (out of memory)"
    tried = [f"{stamp}[E] Error Code: 2: {where}", f"{stamp}[W] UNSUPPORTED_STATE: Skipping tactic 3 due to"]
    built = f"{stamp}[I] Engine generation completed in 40.1 seconds."
    passed = "&&&& PASSED TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=m.onnx"
    found = result(tmp_path, *tried, built, passed)
    assert roles(found) == ["bystander"]
    assert found.faults[0].role_reason.endswith("it said that it succeeded afterwards")
    assert roles(result(tmp_path, *tried, passed.replace("PASSED", "FAILED"))) == ["root"]
    assert roles(result(tmp_path, *tried)) == ["root"]


CAUGHT = "WARNING OOM caught: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB."


@pytest.mark.parametrize(
    ("lines", "role"),
    [
        ([CAUGHT, "INFO retrying with batch 8", "INFO step 2 loss 1.2"], "bystander"),
        ([f"{CAUGHT} Skipping this batch", "INFO step 2 loss 1.2"], "bystander"),
        ([CAUGHT, "INFO retrying with batch 8"], "root"),  # nothing shows that it worked
        ([CAUGHT, "INFO step 2 loss 1.2"], "root"),  # nothing says that it was handled
        ([CAUGHT.replace("WARNING", "ERROR"), "INFO retrying", "INFO step 2 loss 1.2"], "root"),
        ([CAUGHT, "INFO retrying with batch 8", "INFO step 2 loss 1.2", *OOM], "root"),
    ],
)
def test_a_caught_error_is_survived_where_the_program_says_so_and_goes_on(
    tmp_path: Path, lines: list[str], role: str
) -> None:
    found = result(tmp_path, "INFO step 1 loss 1.3", *lines)
    assert role in roles(found)
    assert ("root" in roles(found)) is (role == "root")


STAMPED = "2025-07-12 09:{:02}:00,000 {} engine: "


def test_a_caught_error_is_not_why_the_program_ended_an_hour_later(tmp_path: Path) -> None:
    lines = [
        STAMPED.format(0, "WARNING") + OOM[-1],
        STAMPED.format(0, "WARNING") + "retrying with batch 8",
        *(STAMPED.format(minute, "INFO") + f"step {minute} ok" for minute in range(1, 50)),
        *TRACE,
        "KeyError: 'layers.7'",
    ]
    found = result(tmp_path, *lines)
    assert [(fault.kind, fault.role) for fault in found.faults] == [
        ("out_of_memory", "bystander"),
        ("unknown", "root"),
    ]


def test_what_a_server_answers_that_was_started_again_shows_nothing_of_the_one_before(tmp_path: Path) -> None:
    again = "INFO:     Started server process [140]"
    assert roles(result(tmp_path, *OOM, again, OK, OK)) == ["root"]
    assert roles(result(tmp_path, *OOM, OK, OK)) == ["bystander"]


def test_a_caught_error_needs_one_later_step_and_no_value(tmp_path: Path) -> None:
    calm = [
        STAMPED.format(0, "WARNING") + OOM[-1],
        STAMPED.format(0, "WARNING") + "retrying with smaller batch",
    ]
    assert roles(result(tmp_path, *calm, STAMPED.format(1, "INFO") + "step 2")) == ["bystander"]
    assert roles(result(tmp_path, *calm)) == ["root"]
