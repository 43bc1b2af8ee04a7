"""Lines of loggers: servers, Python, C++ and Rust, with what each of them says (formats.md 6)."""

from __future__ import annotations

from tests.ingest.envelope_clocks import JAN_1, JUN_26, JUN_29, NOV_21, Case, epoch, no_date, no_year

LOGGERS: list[Case] = [
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
