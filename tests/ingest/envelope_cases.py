"""Lines of real formats with their own content, and what each of them says (formats.md 6)."""

from __future__ import annotations

from typing import Any

from tests.ingest.envelope_clocks import (
    FEB_19,
    JAN_1,
    JUN_26,
    JUN_29,
    NOV_3,
    NOV_18,
    NOV_21,
    epoch,
    no_date,
    no_year,
)

Case = tuple[str, str, str, dict[str, Any]]  # raw line, text, envelope, what else is known

CASES: list[Case] = [
    (
        '2026-07-25T07:53:08.21748708+08:00 stdout F   File "a.py", line 3',
        '  File "a.py", line 3',
        "cri",
        {"stream": "stdout", **epoch("2026-07-25T07:53:08+08:00", 217_487_080)},
    ),
    (
        "2026-07-25T07:53:08.2174870Z stderr P half a line",
        "half a line",
        "cri",
        {"stream": "stderr", **epoch("2026-07-25T07:53:08", 217_487_000)},
    ),
    (
        "2026-07-25T07:53:08.217487089Z stderr F",
        "",
        "cri",
        {"stream": "stderr", **epoch("2026-07-25T07:53:08", 217_487_089)},
    ),
    ("2026-01-01T00:00:01.000000002Z hello", "hello", "rfc3339", epoch("2026-01-01T00:00:01", 2)),
    (
        "2026-05-07T12:34:56.1234567Z ##[error]Process completed with exit code 134.",
        "Process completed with exit code 134.",
        "rfc3339+ci_command",
        {"level": "ERROR", **epoch("2026-05-07T12:34:56", 123_456_700)},
    ),
    ("##[group]Run tests", "Run tests", "ci_command", {}),
    (
        "2026-05-07T12:34:56.123456789-05:30 tensor input_handles[0]: unmatched dtype",
        "tensor input_handles[0]: unmatched dtype",
        "rfc3339",
        epoch("2026-05-07T12:34:56-05:30", 123_456_789),
    ),
    (
        (
            r'{"log":"say \"hi\" \u003c\u00e9\ud83d\ude00\t\\n\u001b[0m\n","stream":"stderr",'
            '"time":"2026-01-01T00:00:00.5Z"}'
        ),
        'say "hi" <é😀\t\\n',
        "docker_json",
        {"stream": "stderr", **epoch("2026-01-01T00:00:00", 500_000_000)},
    ),
    (
        '{"log":"  x\\n","stream":"stdout","attrs":{"tag":"a"},"time":"2026-01-01T00:00:00Z"}\r',
        "  x",
        "docker_json",
        {"stream": "stdout", **epoch("2026-01-01T00:00:00")},
    ),
    (
        '{"log": "a: \\"b\\"\\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}',
        'a: "b"',
        "docker_json",
        {"stream": "stderr", **epoch("2026-01-01T00:00:00")},
    ),
    ("max-serve-1  | ready", "ready", "compose", {"process": "max-serve-1"}),
    ("\x1b[36mgpu_worker_2    | \x1b[0m  indented", "  indented", "compose", {"process": "gpu_worker_2"}),
    (
        "Nov 18 17:26:39 node7 vllm[4711]:   two spaces",
        "  two spaces",
        "syslog",
        {"process": "vllm[4711]", "pid": 4711, **no_year(NOV_18, "17:26:39")},
    ),
    (
        "Jan  1 00:00:02 node7 systemd: started",
        "started",
        "syslog",
        {"process": "systemd", **no_year(JAN_1, "00:00:02")},
    ),
    (
        "2026-11-18T17:26:39+0000 node7 python3[12]: hi",
        "hi",
        "syslog",
        {"process": "python3[12]", "pid": 12, **epoch("2026-11-18T17:26:39")},
    ),
    ("[  503.025] NVRM: Xid 31", "NVRM: Xid 31", "dmesg", {"time_ns": 503_025_000_000, "clock": "boot"}),
    ("[12345.678901][ T1234] NVRM: x", "NVRM: x", "dmesg", {"time_ns": 12_345_678_901_000, "clock": "boot"}),
    ("[Wed Jun 24 15:44:20 2026] NVRM: y", "NVRM: y", "dmesg", epoch("2026-06-24T15:44:20")),
    ("\x1b_bk;t=1767225600123\x07  build", "  build", "buildkite", epoch("2026-01-01T00:00:00", 123_000_000)),
    ("bk;t=1767225600123 build", "build", "buildkite", epoch("2026-01-01T00:00:00", 123_000_000)),
    ("_bk;t=1767225600123 build", " build", "buildkite", epoch("2026-01-01T00:00:00", 123_000_000)),
    ("[rank0]:   File x", "  File x", "rank", {"process": "rank0", "rank": 0}),
    (
        "[rank3]:[E219 12:14:43.351647859 ProcessGroupNCCL.cpp:1595] [PG 0] boom",
        "[PG 0] boom",
        "rank+c10",
        {"process": "rank3", "rank": 3, "level": "ERROR", **no_year(FEB_19, "12:14:43", 351_647_859)},
    ),
    (
        "[W1103 01:02:03.000000001 socket.cpp:464] [c10d] slow",
        "[c10d] slow",
        "c10",
        {"level": "WARNING", **no_year(NOV_3, "01:02:03", 1)},
    ),
    ("[E ProcessGroupNCCL.cpp:1414] late", "late", "c10", {"level": "ERROR"}),
    ("[default0]:  File x", "  File x", "role", {"process": "default0"}),
    ("[default1]:[rank1]: Traceback", "Traceback", "role+rank", {"process": "default1", "rank": 1}),
    (
        "(RayWorkerWrapper pid=4009, ip=10.0.0.7)   File x",
        "  File x",
        "tag",
        {"process": "RayWorkerWrapper pid=4009 ip=10.0.0.7", "pid": 4009},
    ),
    (
        "[36m(RayWorkerWrapper pid=4009)[0m hi",
        "hi",
        "tag",
        {"process": "RayWorkerWrapper pid=4009", "pid": 4009},
    ),
    ("(raylet) spilling", "spilling", "tag", {"process": "raylet"}),
    (
        "\x1b[1;36m(EngineCore_DP0 pid=65064)\x1b[0;0m INFO 11-21 10:22:33 [core/x.py:123]   msg",
        "  msg",
        "tag+vllm",
        {
            "process": "EngineCore_DP0 pid=65064",
            "pid": 65064,
            "level": "INFO",
            **no_year(NOV_21, "10:22:33"),
        },
    ),
    ("(VllmWorker rank=1 pid=115) x", "x", "tag", {"process": "VllmWorker pid=115", "rank": 1, "pid": 115}),
    (
        "(Worker pid=1145) (Worker_TP0_EP0 pid=1145) x",
        "x",
        "tag",
        {"process": "Worker_TP0_EP0 pid=1145", "pid": 1145},
    ),
    ("(Worker_TP3 pid=7) x", "x", "tag", {"process": "Worker_TP3 pid=7", "pid": 7, "rank": 3}),
    (
        "ERROR 06-26 23:10:17 engine.py:123] died",
        "died",
        "vllm",
        {"level": "ERROR", **no_year(JUN_26, "23:10:17")},
    ),
    (
        "WARNING 11-21 10:22:33 [a.py:1] \r",
        "",
        "vllm",
        {"level": "WARNING", **no_year(NOV_21, "10:22:33")},
    ),
    (
        "INFO 04-28-2026-15:50:31.931 [a.py:1] x",
        "x",
        "vllm",
        {"level": "INFO", **epoch("2026-04-28T15:50:31", 931_000_000)},
    ),
    (
        "[2026-05-26 07:48:17 DP1 TP2] Scheduler hit an exception",
        "Scheduler hit an exception",
        "sglang",
        {"process": "DP1 TP2", **epoch("2026-05-26T07:48:17")},
    ),
    (
        '[2026-02-12 11:38:29] INFO:     127.0.0.1:0 - "POST / HTTP/1.1" 200 OK',
        '127.0.0.1:0 - "POST / HTTP/1.1" 200 OK',
        "sglang+uvicorn",
        {"level": "INFO", **epoch("2026-02-12T11:38:29")},
    ),
    ("[10:00:00 TP0]   x", "  x", "sglang", {"process": "TP0", "rank": 0, **no_date("10:00:00")}),
    ("[11-21 10:22:33] diffusion", "diffusion", "sglang", no_year(NOV_21, "10:22:33")),
    ("WARNING:  no worker", "no worker", "uvicorn", {"level": "WARNING"}),
    ("INFO:     Started", "Started", "uvicorn", {"level": "INFO"}),
    ("WARNING:vllm.engine:slow", "slow", "python_default", {"level": "WARNING"}),
    ("ERROR:root:  x: y", "  x: y", "python_default", {"level": "ERROR"}),
    (
        "2026-01-01 10:00:00,123 - my.server - INFO - up",
        "up",
        "python",
        {"level": "INFO", **epoch("2026-01-01T10:00:00", 123_000_000)},
    ),
    (
        "2026-11-29 23:08:22,685 INFO server: step 0",
        "step 0",
        "python",
        {"level": "INFO", **epoch("2026-11-29T23:08:22", 685_000_000)},
    ),
    (
        "2026-11-29 23:08:22,685 ERROR RuntimeError: boom",
        "RuntimeError: boom",
        "python",
        {"level": "ERROR", **epoch("2026-11-29T23:08:22", 685_000_000)},
    ),
    (
        "2024-02-29 06:46:46,668\tWARNING worker.py:1749 -- leap",
        "leap",
        "python",
        {"level": "WARNING", **epoch("2024-02-29T06:46:46", 668_000_000)},
    ),
    (
        "2026-01-01 10:00:00.123 | ERROR    | app.serve:run:12 - died",
        "died",
        "loguru",
        {"level": "ERROR", **epoch("2026-01-01T10:00:00", 123_000_000)},
    ),
    (
        "E0101 12:00:00.000001 123 file.cc:12] bad",
        "bad",
        "glog",
        {"level": "ERROR", "pid": 123, **no_year(JAN_1, "12:00:00", 1_000)},
    ),
    (
        "F20260101 12:00:00.5   123 a/file.cc:12] Check failed",
        "Check failed",
        "glog",
        {"level": "FATAL", "pid": 123, **epoch("2026-01-01T12:00:00", 500_000_000)},
    ),
    (
        "W0629 14:36:48.044000 1321572 torch/export/x.py:897] old",
        "old",
        "glog",
        {"level": "WARNING", "pid": 1321572, **no_year(JUN_29, "14:36:48", 44_000_000)},
    ),
    (
        "E0000 00:00:1767225600.651004   12606 instrument.cc:563] absl",
        "absl",
        "absl",
        {"level": "ERROR", "pid": 12606, **epoch("2026-01-01T00:00:00", 651_004_000)},
    ),
    (
        "I0000 00:00:1767225601.000001       9 b.cc:5] go",
        "go",
        "absl",
        {"level": "INFO", "pid": 9, **epoch("2026-01-01T00:00:01", 1_000)},
    ),
    (
        "2026-06-08 13:00:47.364628: E external/xla/x.cc:1981] bad",
        "bad",
        "tensorflow",
        {"level": "ERROR", **epoch("2026-06-08T13:00:47", 364_628_000)},
    ),
    (
        "2026-06-08 13:00:47.364628: W   30864 path.cc:806] hm",
        "hm",
        "tensorflow",
        {"level": "WARNING", **epoch("2026-06-08T13:00:47", 364_628_000)},
    ),
    (
        "\x1b[92m16:05:54.656 INFO:\x1b[0m   model loaded",
        "  model loaded",
        "max",
        {"level": "INFO", **no_date("16:05:54", 656_000_000)},
    ),
    (
        "[92m16:05:54.656 ERROR:[0m x",
        "x",
        "max",
        {"level": "ERROR", **no_date("16:05:54", 656_000_000)},
    ),
    (
        "16:05:54.656 INFO: 4711 MainThread: max.serve: up",
        "up",
        "max",
        {"level": "INFO", "pid": 4711, **no_date("16:05:54", 656_000_000)},
    ),
    (
        "16:05:54.656 INFO: 200 tokens: done: yes",
        "200 tokens: done: yes",
        "max",
        {"level": "INFO", **no_date("16:05:54", 656_000_000)},
    ),
    (
        "25:11:21-16:05:54.656 WARNING: low memory",
        "low memory",
        "max_file",
        {"level": "WARNING", **epoch("2025-11-21T16:05:54", 656_000_000)},
    ),
    (
        (
            '{"levelname": "ERROR", "message": "a \\"b\\"", "request_id": null, "batch_id": 7, '
            '"timestamp": "2026-01-01T00:00:00.250Z"}'
        ),
        'a "b"',
        "max_json",
        {"level": "ERROR", **epoch("2026-01-01T00:00:00", 250_000_000)},
    ),
    ('{"levelname":"INFO","message":"x"}', "x", "max_json", {"level": "INFO"}),
    (
        "2026-01-08T12:00:00.123456Z ERROR text_generation_launcher: Shard 0 crashed",
        "Shard 0 crashed",
        "tracing",
        {"level": "ERROR", **epoch("2026-01-08T12:00:00", 123_456_000)},
    ),
    (
        "2026-01-08T12:00:00.123456Z  WARN batch{size=1}:prefill{id=0}: text_generation::v3: lib.rs:33: x",
        "lib.rs:33: x",
        "tracing",
        {"level": "WARNING", **epoch("2026-01-08T12:00:00", 123_456_000)},
    ),
    (
        (
            '{"timestamp":"2026-01-08T12:00:00.123456Z","level":"ERROR","fields":{"message":"out of memory"},'
            '"target":"text_generation_router","span":{"id":1}}'
        ),
        "out of memory",
        "tgi_json",
        {"level": "ERROR", **epoch("2026-01-08T12:00:00", 123_456_000)},
    ),
    (
        "2026-01-08T12:00:00.123456Z ERROR shard-manager: text_generation_launcher: Shard terminated rank=2",
        "Shard terminated rank=2",
        "tracing",
        {"level": "ERROR", **epoch("2026-01-08T12:00:00", 123_456_000)},
    ),
    (
        (
            '{"timestamp":"2026-01-08T12:00:00.123456Z","level":"ERROR","fields":{"message":"Shard died"},'
            '"target":"text_generation_launcher","span":{"rank":3,"name":"shard-manager"}}'
        ),
        "Shard died",
        "tgi_json",
        {"level": "ERROR", "rank": 3, **epoch("2026-01-08T12:00:00", 123_456_000)},
    ),
    (
        "(VllmWorker TP5 EP5 pid=411) ERROR 08-29 02:12:59 [multiproc_executor.py:596] x",
        "x",
        "tag+vllm",
        {
            "level": "ERROR",
            "process": "VllmWorker TP5 EP5 pid=411",
            "rank": 5,
            "pid": 411,
            **no_year(240, "02:12:59"),
        },
    ),
    (
        "\x1b[36m(RayWorkerWrapper pid=4009)\x1b[0m boom \x1b[32m [repeated 3x across cluster]\x1b[0m",
        "boom ",
        "tag",
        {"process": "RayWorkerWrapper pid=4009", "pid": 4009},
    ),
    (
        "(Actor pid=7) boom [repeated 2x across cluster] (Ray deduplicates logs by default. Set x to y.)",
        "boom",
        "tag",
        {"process": "Actor pid=7", "pid": 7},
    ),
    (
        "[01/21/2026-14:16:54] [TRT] [E] 1: [x.cpp::f::1] Error",
        "1: [x.cpp::f::1] Error",
        "tensorrt+tensorrt",
        {"level": "ERROR", **epoch("2026-01-21T14:16:54")},
    ),
    (
        "[01/21/2026-14:16:54] [TRT-LLM] [RANK 3] [I] [_torch  ] go",
        "go",
        "tensorrt+tensorrt",
        {"level": "INFO", "rank": 3, **epoch("2026-01-21T14:16:54")},
    ),
    ("[TensorRT-LLM][ERROR] CUDA runtime error", "CUDA runtime error", "tensorrt_llm", {"level": "ERROR"}),
    (
        "[06:43:15.209195] coredump:   - Device: 0",
        "coredump:   - Device: 0",
        "coredump_clock",
        no_date("06:43:15", 209_195_000),
    ),
    (
        "[106586:106590:20260210,170812.481306:WARNING close_multiple.cc:66] close",
        "close",
        "crashpad",
        {"level": "WARNING", "pid": 106586, **epoch("2026-02-10T17:08:12", 481_306_000)},
    ),
    (
        'time=2026-04-14T20:20:32.049+08:00 level=WARN source=s.go:619 msg="gpu \\"0\\"" error=2',
        'gpu "0" error=2',
        "ollama",
        {"level": "WARNING", **epoch("2026-04-14T20:20:32+08:00", 49_000_000)},
    ),
    (
        "time=2026-04-14T20:20:32.049Z level=INFO msg=ready",
        "ready",
        "ollama",
        {"level": "INFO", **epoch("2026-04-14T20:20:32", 49_000_000)},
    ),
    ("[56285] 0.54.236.075 E boom", "boom", "llama_cpp", {"level": "ERROR", "process": "56285"}),
    ("0.00.236.075 I main: go", "main: go", "llama_cpp", {"level": "INFO"}),
    (
        "[2026-09-27 06:46:46,668 E 61 3295] (raylet) logging.cc:440: *** SIGSEGV",
        "*** SIGSEGV",
        "ray_cpp",
        {"level": "ERROR", "pid": 61, **epoch("2026-09-27T06:46:46", 668_000_000)},
    ),
    (
        "[2026-09-27 06:46:46,668 W 61 61] core_worker.cc:1: x",
        "x",
        "ray_cpp",
        {"level": "WARNING", "pid": 61, **epoch("2026-09-27T06:46:46", 668_000_000)},
    ),
]
