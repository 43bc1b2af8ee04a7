"""Exceptions that ended a process and that no other witness explains."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.pipeline import analyze
from analyzer.witnesses.python_traceback import WITNESS

Read = Any
HEADER = "Traceback (most recent call last):"
TRACE = [HEADER, '  File "/srv/app/a.py", line 7, in f', "    y = op(x)"]


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_last_traceback_of_a_program_is_a_fault(read: Read) -> None:
    reading = read(WITNESS, ["boot", *TRACE, "ValueError: no such head size"])
    (fault,) = faults(reading)
    assert (fault.kind, fault.site, fault.line, fault.block_first) == ("unknown", "host", 5, 2)
    assert fault.text == "ValueError: no such head size"
    assert fault.python is not None
    assert fault.python.line == 7
    assert (reading.parsed, reading.continuation) == ([2], [3, 4, 5])


def test_program_that_goes_on_has_no_fault(read: Read) -> None:
    lines = [*TRACE, "KeyError: 'prompt'", "", *(f"request {n} done" for n in range(9))]
    reading = read(WITNESS, lines)
    assert not faults(reading)
    assert not reading.losses


@pytest.mark.parametrize(
    "line",
    [
        "Exception in thread Thread-3 (poll):",
        "Task exception was never retrieved",
    ],
)
def test_end_of_a_thread_is_not_the_end_of_the_process(read: Read, line: str) -> None:
    assert not faults(read(WITNESS, [line, *TRACE, "ValueError: x"]))


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "SystemExit: 0", "asyncio.exceptions.CancelledError"])
def test_who_was_stopped_did_not_fail(read: Read, name: str) -> None:
    assert not faults(read(WITNESS, [*TRACE, name]))


def told(folder: Path, *lines: str) -> list[tuple[str, str]]:
    """Witness and role of the faults that all witnesses together find."""
    log = folder / "serve.log"
    log.write_text("\n".join(lines) + "\n")
    return [(fault.witness, fault.role) for fault in analyze([str(log)]).faults]


@pytest.mark.parametrize(
    ("error", "witness"),
    [
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "c10"),
        ("RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal ...)", "max_errors"),
        ("RuntimeError: Triton Error [CUDA]: invalid argument", "triton"),
        ("RuntimeError: server worker died with exit code -11", "process_death"),
    ],
)
def test_what_another_witness_makes_a_fault_of_is_left_to_it(
    tmp_path: Path, error: str, witness: str
) -> None:
    assert told(tmp_path, *TRACE, error) == [(witness, "root")]


@pytest.mark.parametrize(
    "error",
    [
        "subprocess.CalledProcessError: Command '['gcc', 'main.c']' returned non-zero exit status 1.",
        "RuntimeError: DataLoader worker (pid 4411) is killed by signal: Bus error. ",
        "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 1",
        "RuntimeError: Worker failed with error 'KeyError: 'layers.3.mlp'', see the stack trace above",
        "FileNotFoundError: Shard model-00002-of-00004.safetensors not found in /models/x",
    ],
)
def test_words_that_another_witness_looks_for_explain_nothing(tmp_path: Path, error: str) -> None:
    assert told(tmp_path, *TRACE, error) == [("python_traceback", "root")]


def test_words_in_the_source_lines_explain_nothing(tmp_path: Path) -> None:
    source = '    check(state != "Killed", "Aborted", f"bad exit code {code}")'
    assert told(tmp_path, *TRACE[:2], source, "AssertionError") == [("python_traceback", "root")]


@pytest.mark.parametrize(
    "end",
    [
        ["Aborted (core dumped)"],
        ["========= Target application returned an error", "========= ERROR SUMMARY: 0 errors"],
    ],
)
def test_what_a_shell_or_a_tool_says_at_the_end_belongs_to_no_exception(
    tmp_path: Path, end: list[str]
) -> None:
    found = told(tmp_path, "========= COMPUTE-SANITIZER", *TRACE, "KeyError: 'x'", *end)
    assert found[0] == ("python_traceback", "root")
    assert found[1:] in ([], [("process_death", "cascade")])


def test_repeat_of_an_error_that_is_only_counted_is_explained(tmp_path: Path) -> None:
    lines = [*TRACE, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."] * 40
    late = [*TRACE, "RuntimeError: CUDA error: out of memory"]
    assert {witness for witness, _ in told(tmp_path, *lines, *late, *lines)} == {"c10", "oom"}


def test_chain_with_an_explained_cause_is_explained(tmp_path: Path) -> None:
    lines = [
        *TRACE,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        *TRACE,
        "RuntimeError: engine is dead",
    ]
    assert told(tmp_path, *lines) == [("oom", "root")]


def test_output_of_a_compiler_belongs_to_the_exception(tmp_path: Path) -> None:
    output = [
        "[1/3] /usr/local/cuda/bin/nvcc -c batch_prefill.cu -o batch_prefill.cuda.o",
        "FAILED: batch_prefill.cuda.o ",
        "/usr/local/cuda/bin/nvcc -c batch_prefill.cu exit status 2",
        *["/srv/x.cuh(12): note: in an instantiation of template f"] * 40,
        "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
        "ninja: build stopped: subcommand failed.",
    ]
    log = tmp_path / "serve.log"
    log.write_text("\n".join([*TRACE, "RuntimeError: Ninja build failed. Ninja output:", *output]) + "\n")
    (fault,) = analyze([str(log)]).faults
    assert (fault.kind, fault.last_line) == ("configuration", 4 + len(output))
    assert fault.text.endswith("Ninja output: nvcc fatal   : Unsupported gpu architecture 'compute_120a'")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ModuleNotFoundError: No module named 'x'", "configuration"),
        ("MemoryError", "out_of_memory"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "peer_lost"),
        ("app.errors.ShapeError: bad", "unknown"),
        ("FloatingPointError: invalid value (nan) encountered in jit(log)", "nan"),
        ("FloatingPointError: divide by zero encountered in divide", "unknown"),
    ],
)
def test_kinds(read: Read, error: str, kind: str) -> None:
    assert faults(read(WITNESS, [*TRACE, error]))[0].kind == kind


def test_traceback_cut_by_the_end_of_the_log(read: Read) -> None:
    (fault,) = faults(read(WITNESS, TRACE[:2]))
    assert "cut off" in fault.text


def test_many_logged_tracebacks_are_cheap(read: Read) -> None:
    began = time.process_time()
    reading = read(WITNESS, [*TRACE, "ValueError: x"] * 30_000)
    assert len(faults(reading)) == 1
    assert time.process_time() - began < 10


LAUNCHER = [
    "failed (exitcode: {code}) local_rank: 0 (pid: 4188) of binary: /usr/bin/python3",
    HEADER,
    '  File "/opt/venv/lib/torch/distributed/launcher/api.py", line 270, in launch_agent',
    "    raise ChildFailedError(",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    *["=" * 40] * 9,
]


@pytest.mark.parametrize(("code", "raised"), [(1, True), (-11, False)])
def test_what_a_rank_raised_stands_above_the_exception_of_its_launcher(
    read: Read, code: int, raised: bool
) -> None:
    """A rank that died by a signal may have survived the exception before."""
    lines = [*TRACE, "KeyError: 'lr'", *(line.format(code=code) for line in LAUNCHER)]
    assert [fault.line for fault in faults(read(WITNESS, lines))] == [4] * raised


@pytest.mark.parametrize(
    "words",
    [
        "The NVIDIA driver on your system is too old (found version 11040).",
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU.",
        "No CUDA GPUs are available",
    ],
)
def test_a_driver_that_does_not_fit_is_configuration(read: Read, words: str) -> None:
    (fault,) = faults(read(WITNESS, [*TRACE, f"RuntimeError: {words}"]))
    assert fault.kind == "configuration"


@pytest.mark.parametrize(
    ("last", "ended"),
    [
        ("INFO:     Waiting for connections", False),
        ("INFO 11-29 10:00:05 [loggers.py:1] Avg prompt throughput: 3.1 tokens/s", False),
        ("INFO:     Finished server process [12]", True),
        ("INFO 11-29 10:00:05 [api_server.py:1] Shutting down FastAPI HTTP server.", True),
        ("[rank0]:[W1129 10:00:05.123456789 ProcessGroupNCCL.cpp:1] Warning: not destroyed", True),
    ],
)
def test_behind_stamps_the_logger_that_goes_on_says_it(tmp_path: Path, last: str, ended: bool) -> None:
    stamp = "2026-11-29T10:00:04.123456789Z stderr F "
    log = tmp_path / "serve.log"
    log.write_text("".join(f"{stamp}{line}\n" for line in (*TRACE, "ValueError: no such head size", last)))
    assert bool(analyze([str(log)]).faults) is ended


IMA_OUTPUT = "output: 'RuntimeError: CUDA error: an illegal memory access was encountered'"
VLLM = "(APIServer pid=7) "
LOGGED = f"{VLLM}ERROR 11-21 10:23:01 [serving_chat.py:257] "
ACCESS = f'{VLLM}INFO:     10.0.3.4:40122 - "POST /v1/chat/completions HTTP/1.1" '
TRACKER = [HEADER, '  File "/usr/lib/python3.12/multiprocessing/resource_tracker.py", line 264, in main',
           "    cache[rtype].remove(name)", "KeyError: '/psm_91a0b2ce'"]  # fmt: skip


def texts(folder: Path, *lines: str) -> list[str]:
    log = folder / "serve.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    return [fault.text for fault in analyze([str(log)]).faults]


@pytest.mark.parametrize("answers", [["400 Bad Request"], ["400 Bad Request", "200 OK"], ["200 OK"] * 40])
def test_a_request_that_was_refused_is_no_crash(tmp_path: Path, answers: list[str]) -> None:
    refused = [LOGGED + line for line in ("Error in preprocessing prompt inputs", *TRACE, "ValueError: long")]
    assert not texts(tmp_path, *refused, *(ACCESS + answer for answer in answers))


def test_lines_of_another_level_are_no_text_of_the_exception(tmp_path: Path) -> None:
    logged = [LOGGED + line for line in (*TRACE, "ValueError: long")]
    (said,) = texts(tmp_path, *logged, f"{VLLM}INFO:     Shutting down")
    assert said == "ValueError: long"


def test_the_helper_that_cleans_up_at_exit_is_another_process(tmp_path: Path) -> None:
    assert texts(tmp_path, *TRACE, "ValueError: two fields", *TRACKER) == ["ValueError: two fields"]
    assert not texts(tmp_path, *TRACKER)


@pytest.mark.parametrize(
    "above",
    [
        ["Task exception was never retrieved", "future: <Task finished coro=<f()> exception=KeyError(1)>"],
        ["Exception in callback f()", "handle: <Handle f()>"],
    ],
)
def test_asyncio_names_the_task_between_its_sentence_and_the_traceback(
    tmp_path: Path, above: list[str]
) -> None:
    assert not texts(tmp_path, *above, *TRACE, "KeyError: 1")


def test_a_traceback_in_a_warning_is_no_end(tmp_path: Path) -> None:
    stamp = "W1121 10:20:00.100000 4711 torch/_dynamo/convert_frame.py:1233] "
    assert not texts(tmp_path, *(stamp + line for line in (*TRACE, "RuntimeError: no triton")), "step 100")


def test_an_engine_that_was_cancelled_hands_on_that_a_worker_died(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    stamp = "ERROR 11-21 10:30:00 [multiproc_executor.py:230] "
    died = f"{stamp}Worker proc VllmWorker-1 died unexpectedly, shutting down executor."
    log.write_text("\n".join([died, *TRACE, "RuntimeError: cancelled", ""]))
    result = analyze([str(log)])
    assert [(fault.role, fault.kind) for fault in result.faults] == [
        ("root", "peer_lost"),
        ("cascade", "unknown"),
    ]
    assert result.conclusion.confidence == "undecided"


def test_what_a_model_answered_is_no_error(tmp_path: Path) -> None:
    assert not texts(
        tmp_path, f"INFO 11-21 10:22:44 [logger.py:90] Generated response chatcmpl-4: {IMA_OUTPUT}, n: 1"
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ValueError: 4.00 GiB KV cache is needed, which is larger than the available one", "configuration"),
        ("OSError: [Errno 98] Address already in use", "configuration"),
        ("RuntimeError: [gloo] Connection closed by peer [10.0.0.2]:41012", "peer_lost"),
        ("RuntimeError: Unexpected error: Error 802: system not yet initialized", "configuration"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "configuration"),
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests",
            "out_of_memory",
        ),
    ],
)
def test_what_does_not_fit_is_no_bug(tmp_path: Path, error: str, kind: str) -> None:
    log = tmp_path / "serve.log"
    log.write_text("\n".join([*TRACE, error, ""]))
    assert [fault.kind for fault in analyze([str(log)]).faults] == [kind]


def test_a_scheduler_that_hit_an_exception_says_less_than_the_exception(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    head = "[2025-05-26 07:45:51 TP1] Scheduler hit an exception: "
    log.write_text("\n".join([head + TRACE[0], *TRACE[1:], "KeyError: 'w2_weight_scale'", ""]))
    faults = analyze([str(log)]).faults
    assert [(fault.role, fault.text) for fault in faults] == [
        ("cascade", "Scheduler hit an exception"),
        ("root", "KeyError: 'w2_weight_scale'"),
    ]


MAIN = [HEADER, '  File "/srv/serve.py", line 120, in <module>', "    main()", "RuntimeError: overflow"]
STAMP = "2025-07-12 10:05:00,00{} {} server: "


def test_what_a_destructor_raises_at_exit_is_not_why_the_program_ended(tmp_path: Path) -> None:
    ignored = ["Exception ignored in: <function Pool.__del__>", *TRACE, "TypeError: 'NoneType'"]
    assert texts(tmp_path, *MAIN, *ignored) == ["RuntimeError: overflow"]
    assert not texts(tmp_path, "step 1", *ignored)


def test_asyncios_farewell_is_no_sign_of_life(tmp_path: Path) -> None:
    unclosed = [
        "ERROR:asyncio:Unclosed client session",
        "client_session: <aiohttp.X>",
        "connector: <aiohttp.Y>",
    ]
    assert texts(tmp_path, *TRACE, "ValueError: x", *unclosed, *unclosed) == ["ValueError: x"]


@pytest.mark.parametrize("level", ["ERROR", "WARNING"])
def test_a_logger_that_says_that_the_program_ends_leaves_the_exception_its_end(
    tmp_path: Path, level: str
) -> None:
    head, end = STAMP.format(1, level) + "main loop died", STAMP.format(2, "INFO") + "exiting with code 1"
    assert texts(tmp_path, head, *TRACE, "ValueError: x", end) == ["ValueError: x"]
    assert not texts(tmp_path, head, *TRACE, "ValueError: x", STAMP.format(2, "INFO") + "request 2 done")


@pytest.mark.parametrize(
    "after",
    [
        ['INFO:     10.0.0.4:51234 - "POST /generate HTTP/1.1" 503 Service Unavailable'],
        ["terminate called without an active exception", "Aborted (core dumped)"],
    ],
)
def test_a_thread_behind_which_nobody_answers_was_the_one_that_served(
    tmp_path: Path, after: list[str]
) -> None:
    found = texts(tmp_path, "Exception in thread Thread-3 (serve):", *TRACE, "IndexError: x", *after)
    assert found[0] == "IndexError: x"


def test_an_exception_from_the_top_of_a_program_ends_it_whatever_others_answer(tmp_path: Path) -> None:
    assert texts(tmp_path, *MAIN, f"{ACCESS}400 Bad Request") == ["RuntimeError: overflow"]
