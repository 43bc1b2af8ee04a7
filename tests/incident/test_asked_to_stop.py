"""What processes say of their end is no failure where somebody asked the program to stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result

SHUTTING = "INFO:     Shutting down"
DONE = "INFO:     Application shutdown complete."
DIED = (
    "ERROR 08-18 03:43:42 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 15 died, exit code: -15"
)
ENGINE = "ERROR 11-21 10:30:00 [async_llm.py:480] AsyncLLM output_handler failed."
GONE = "ERROR 11-21 10:29:59 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly."
AGENT = "torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers"
SIGNAL = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 293813 got signal: 15"
SLURM = "slurmstepd: error: *** STEP 1234.0 ON node7 CANCELLED AT 2025-11-21T10:30:00 DUE TO PREEMPTION ***"
CONTAINER = "vllm-1 exited with code 143"
KILLED = "vllm-1 exited with code 137"
IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


def result(folder: Path, *lines: str) -> Result:
    path = folder / "input.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path)])


@pytest.mark.parametrize(
    "lines",
    [
        [SHUTTING, DONE, DIED],
        [SHUTTING, ENGINE],  # vllm#48745
        [SHUTTING, CONTAINER],
        [CONTAINER],
        [AGENT, SIGNAL],
        [SIGNAL],
        [SLURM],
    ],
)
def test_what_is_told_after_the_request_is_no_root(tmp_path: Path, lines: list[str]) -> None:
    found = result(tmp_path, *lines)
    assert [fault.role for fault in found.faults] == ["bystander"]
    assert found.conclusion.confidence == "none"
    assert found.conclusion.statement.endswith("somebody asked the program to stop.")
    assert any("asked the program to stop (line " in note for note in found.conclusion.notes)


@pytest.mark.parametrize(
    "lines",
    [
        [DIED],  # a server ends its workers so when something failed
        [ENGINE, SHUTTING, DONE],  # it shuts down because the engine died
        [GONE, SHUTTING, ENGINE],
        [SHUTTING, IMA, DIED],
        [SHUTTING, KILLED],  # by somebody who lost patience, or for memory
        [DIED, CONTAINER],
    ],
)
def test_what_failed_without_being_asked_stays(tmp_path: Path, lines: list[str]) -> None:
    found = result(tmp_path, *lines)
    assert "root" in [fault.role for fault in found.faults]
    assert found.conclusion.confidence != "none"
