"""What vLLM, SGLang, TGI, MAX and Ray say about their workers (formats.md 3.10-3.12, 3.21)."""

from __future__ import annotations

import time

import pytest

from analyzer.model import Advice, FaultRecord, Reading, ScheduledRequest, ServerState
from analyzer.witness import Witness
from analyzer.witnesses import max_serve, ray, sglang, tgi, vllm
from tests.witnesses.conftest import MemoryLog, Reader

VLLM = """\
EngineCore encountered a fatal error.
Traceback (most recent call last):
  File "/srv/vllm/core.py", line 711, in run_engine_core
    engine_core.run_busy_loop()
ValueError: no such adapter
AsyncLLM output_handler failed.
vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'E_DP0': -4}
WorkerProc hit an exception: %s
Worker proc VllmWorker-0 died unexpectedly, shutting down executor.
Worker VllmWorkerProcess pid 52528 died, exit code: -6
TimeoutError: RPC call to sample_tokens timed out.
Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.
"""
SGLANG = """\
Scheduler hit an exception: Traceback (most recent call last):
Received sigquit from a child process. It usually means the child failed.
Watchdog timeout (self.watchdog_timeout=300)
"""
TGI = """\
Shard complete standard error output:
Shard process was signaled to shutdown with signal 9 rank=3
Shard 0 crashed
Error: ShardCannotStart
Server error: transport error
"""
MAX = """\
Still compiling model (56.4s elapsed)
Worker exception, shutting down: Segmentation fault
max.serve.process_control.SubprocessExit: Terminated
TimeoutError: Model Worker failed heartbeat check
RuntimeError: Model Worker failed to become ready
Worker exception, Shutting down...
"""
RAY = """\
ray.exceptions.RayTaskError(RuntimeError): ray::W.execute() (pid=4009, ip=10.0.0.2, actor_id=3f, repr=<x>)
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: WorkerDict
\tpid: 87687
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR
A worker died or was killed while executing a task by an unexpected system error.
*** SIGABRT received at time=1764007559 on cpu 2 ***
"""
ALL = ((vllm, VLLM), (sglang, SGLANG), (tgi, TGI), (max_serve, MAX), (ray, RAY))
every_server = pytest.mark.parametrize(
    ("witness", "text"),
    [(module.WITNESS, text) for module, text in ALL],
    ids=lambda one: getattr(one, "name", ""),
)


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def one(reading: Reading) -> FaultRecord:
    (fault,) = faults(reading)
    return fault


@every_server
def test_every_line_is_read(read: Reader, witness: Witness, text: str) -> None:
    reading = read(witness, text)
    assert not reading.losses
    assert not reading.not_mine


@every_server
def test_a_log_cut_anywhere_is_read(read: Reader, witness: Witness, text: str) -> None:
    lines = text.splitlines()
    whole = len(faults(read(witness, lines)))
    for cut in range(len(lines)):
        first, last = read(witness, lines[:cut]), read(witness, lines[cut:])
        assert not first.losses
        assert not last.losses
        assert len(faults(first)) + len(faults(last)) >= whole


@every_server
def test_a_text_glued_to_a_progress_bar_is_read(read: Reader, witness: Witness, text: str) -> None:
    bar = "100%|####| 30/30 [00:27<00:00, 1.09it/s]"
    plain = [fault.kind for fault in faults(read(witness, text))]
    assert [
        fault.kind for fault in faults(read(witness, [bar + line for line in text.splitlines()]))
    ] == plain


@every_server
def test_interleaved_processes_are_told_apart(witness: Witness, text: str) -> None:
    lines = [line for line in text.splitlines() for _ in range(2)]
    log = MemoryLog(lines, ["a", "b"] * (len(lines) // 2))
    found = faults(witness.read(log.gated(witness), log))
    assert [one.kind for one in found if one.process == "a"] == [
        one.kind for one in found if one.process == "b"
    ]


@every_server
def test_repeats_are_cheap(witness: Witness, text: str) -> None:
    lines = text.splitlines()
    log = MemoryLog(lines * (100_000 // len(lines)))
    gated = log.gated(witness)
    begin = time.process_time()
    reading = witness.read(gated, log)
    assert time.process_time() - begin < 10.0
    assert len(reading.records) < 50


def test_vllm_hands_failures_on(read: Reader) -> None:
    found = {fault.line: fault for fault in faults(read(vllm.WITNESS, VLLM))}
    assert {line for line, fault in found.items() if not fault.relayed} == {12}
    assert found[8].kind == "host_abort"
    assert found[8].name == "SIGILL"
    assert (found[11].name, found[11].pid) == ("SIGABRT", 52528)
    assert found[12].kind == "hang_timeout"


def test_the_traceback_of_the_server_belongs_to_its_error(read: Reader) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/srv/a.py", line 1, in f',
        "    raise EngineDeadError()",
    ]
    reading = read(vllm.WITNESS, [*lines, "EngineDeadError: EngineCore encountered an issue."])
    assert (reading.parsed, reading.continuation) == ([4], [1, 2, 3])
    assert one(reading).block_first == 1


def test_the_batch_names_its_requests(read: Reader) -> None:
    """Ids with and without quotes; a dump that was cut keeps what it has."""
    dump = "SchedulerOutput(x=[1], num_scheduled_tokens={chatcmpl-1: 4090, 'cmpl-7-0': 1}, total_num_s=4091"
    found = [r for r in read(vllm.WITNESS, dump).records if isinstance(r, ScheduledRequest)]
    assert [(r.request_id, r.tokens) for r in found] == [("chatcmpl-1", 4090), ("cmpl-7-0", 1)]
    cut = read(vllm.WITNESS, dump[: dump.index("7-0")]).records
    assert [(r.request_id, r.tokens) for r in cut if isinstance(r, ScheduledRequest)][-1] == ("cmpl-", None)


def test_a_dump_of_a_thousand_requests_is_cheap(read: Reader) -> None:
    dump = "num_scheduled_tokens={" + ", ".join(f"cmpl-{n:032x}-0: 1" for n in range(2_000)) + "}, total=2000"
    begin = time.process_time()
    assert len(read(vllm.WITNESS, dump).records) == 2_000
    assert time.process_time() - begin < 5.0


@pytest.mark.parametrize("usage", ["kv_cache_usage", "gpu_cache_usage"])
def test_the_load_is_told_in_words(read: Reader, usage: str) -> None:
    text = f"SchedulerStats(num_running_reqs=8, num_waiting_reqs=3, step=0, {usage}=0.9312, x=Y(reset=False))"
    (state,) = read(vllm.WITNESS, text).records
    assert isinstance(state, ServerState)
    assert state.text == "8 requests were running, 3 waiting, KV cache 93.1% full"


def test_the_input_of_the_failing_step_is_named(read: Reader) -> None:
    (advice,) = read(
        vllm.WITNESS, "Writing input of failed execution to /tmp/err_execute_model_input_1.pkl..."
    ).records
    assert isinstance(advice, Advice)
    assert advice.text.endswith("/tmp/err_execute_model_input_1.pkl")


def test_tgi_tells_signal_and_rank(read: Reader) -> None:
    killed = next(fault for fault in faults(read(tgi.WITNESS, TGI)) if fault.line == 2)
    assert (killed.kind, killed.name, killed.rank, killed.relayed) == ("host_abort", "SIGKILL", 3, True)


def test_a_worker_that_compiles_is_not_broken(read: Reader) -> None:
    beat = next(fault for fault in faults(read(max_serve.WITNESS, MAX)) if fault.kind == "hang_timeout")
    assert "still compiling at line 1" in beat.text
    late = one(read(max_serve.WITNESS, "TimeoutError: Model Worker failed heartbeat check"))
    assert "compiling" not in late.text


def test_max_reads_the_signal_of_its_worker(read: Reader) -> None:
    found = faults(read(max_serve.WITNESS, MAX))
    assert [(fault.kind, fault.name) for fault in found[:2]] == [
        ("host_segfault", "SIGSEGV"),
        ("peer_lost", "SIGTERM"),
    ]
    assert all(fault.relayed for fault in found)


def test_ray_names_the_pid_of_a_dead_actor(read: Reader) -> None:
    reading = read(ray.WITNESS, RAY)
    pids = {fault.line: fault.pid for fault in faults(reading)}
    assert (pids[1], pids[2]) == (4009, 87687)
    assert reading.continuation == [3, 4]


@pytest.mark.parametrize(
    ("witness", "text"),
    [
        (vllm.WITNESS, "    raise EngineDeadError()"),
        (ray.WITNESS, "    except RayTaskError as error:"),
        (tgi.WITNESS, "Shard terminated"),
        (max_serve.WITNESS, "    raise SubprocessExit(exitcode)"),
    ],
)
def test_source_code_and_other_programs_are_not_ours(read: Reader, witness: Witness, text: str) -> None:
    reading = read(witness, text)
    assert not reading.records
    assert not reading.losses


GONE = "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client."


def test_an_engine_process_that_is_gone_is_a_last_resort(read: Reader) -> None:
    (fault,) = read(vllm.WITNESS, GONE).records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.relayed) == ("peer_lost", True)
    assert "also printed when it was asked to stop" in fault.text


@pytest.mark.parametrize(
    "asked",
    [
        "Shutting down FastAPI HTTP server.",
        "KeyboardInterrupt",
        "[launcher.py:99] Received SIGTERM",
        "INFO:     Application shutdown complete.",
    ],
)
def test_an_engine_that_ends_behind_a_request_to_stop_did_not_fail(read: Reader, asked: str) -> None:
    assert read(vllm.WITNESS, [asked, GONE]).records == []
    assert len(read(vllm.WITNESS, [GONE, asked]).records) == 1
