"""Lines with plain stamps, and JSON records, with what each of them says."""

from __future__ import annotations

import json

from tests.ingest.envelope_clocks import JAN_1, NOV_18, NOV_21, Case, epoch, no_date, no_year

NOV_29 = 332
TEN = epoch("2026-11-29T10:00:00")
MILLIS = epoch("2026-11-29T10:00:00", 123_000_000)
FRAME = '  File "a.py", line 3, in f'
UNIX = 1771114494  # the seconds of SECONDS
SECONDS = "2026-02-15T00:14:54"

DATED: list[Case] = [
    (f"2026-11-29 10:00:00 {FRAME}", FRAME, "stamp", TEN),
    ("2026-11-29 10:00:00", "", "stamp", TEN),
    ("2026-11-29 10:00:00.123 RuntimeError: x", "RuntimeError: x", "stamp", MILLIS),
    (f"2026-11-29 10:00:00,123 {FRAME}", FRAME, "stamp", MILLIS),
    ("2026-11-29 10:00:00.123456 a", "a", "stamp", epoch("2026-11-29T10:00:00", 123_456_000)),
    ("2026-11-29T10:00:00.123456 - a", "a", "stamp", epoch("2026-11-29T10:00:00", 123_456_000)),
    ("2026-11-29 10:00:00 - an item", "- an item", "stamp", TEN),
    ("2026-11-29 10:00:00+0000 a", "a", "stamp", TEN),
    ("2026-11-29 10:00:00.123 +0130 a", "a", "stamp", epoch("2026-11-29T10:00:00+01:30", 123_000_000)),
    ("2026-11-29 10:00:00Z a", "a", "stamp", TEN),
    ("2026-11-29 10:00:00 UTC a", "a", "stamp", TEN),
    ("2026-11-29 10:00:00 CUDA error: x", "CUDA error: x", "stamp", TEN),
    ("2026-11-29 10:00:00.123 |   a", "  a", "stamp", MILLIS),
    ("2026-11-29 10:00:00.123 | ERROR    | a", "a", "stamp", {"level": "ERROR", **MILLIS}),
    ("2026-11-29 10:00:00,123 [ERROR] a", "a", "stamp", {"level": "ERROR", **MILLIS}),
    ("[2026-11-29 10:00:00.123]: a", "a", "stamp", MILLIS),
    ("[2026-11-29 10:00:00 +0000] [71] [INFO] a", "a", "stamp", {"level": "INFO", "pid": 71, **TEN}),
    ("2026/11/29 10:00:00 a.go:7: b", "a.go:7: b", "stamp", TEN),
    ("2026/11/29 10:00:00.123456   a", "  a", "stamp", epoch("2026-11-29T10:00:00", 123_456_000)),
    ("2026/11/29 10:00:00 [error] 7#7: *1 a", "[error] 7#7: *1 a", "stamp", TEN),
    (f"Nov 29 10:00:00 {FRAME}", FRAME, "ts", no_year(NOV_29, "10:00:00")),
    ("Nov 29 10:00:00", "", "ts", no_year(NOV_29, "10:00:00")),
    ("Jan  1 10:00:00 a: b", "a: b", "ts", no_year(JAN_1, "10:00:00")),
    (
        "Nov 29 10:00:00.123456 RuntimeError: CUDA error: x",
        "RuntimeError: CUDA error: x",
        "ts",
        no_year(NOV_29, "10:00:00", 123_456_000),
    ),
]
# What has the beginning of syslog and no unit; what has one.
SYSLOG: list[Case] = [
    *(
        (f"Nov 29 10:00:00 {text}", text, "ts", no_year(NOV_29, "10:00:00"))
        for text in (
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "CUDA error: an illegal memory access was encountered",
            "tensor input_handles[0]: unmatched dtype",
            "input_handles[3]: unmatched dtype",
            "torch.AcceleratorError: CUDA error: x",
            "Source Traceback:",
            "gpu0 error: x",
            "srv/app/max_cases.py:57:<module>",
        )
    ),
    *(
        (f"Nov 18 17:26:39 {unit}: a: b", "a: b", "syslog", {**known, **no_year(NOV_18, "17:26:39")})
        for unit, known in (
            ("node vllm[123]", {"process": "vllm[123]", "pid": 123}),
            ("vllm[123]", {"process": "vllm[123]", "pid": 123}),
            ("node systemd[1]", {"process": "systemd[1]", "pid": 1}),
            ("node7 serve[5]", {"process": "serve[5]", "pid": 5}),
            ("node kernel", {"process": "kernel"}),
            ("kernel", {"process": "kernel"}),
            ("node-7 serve", {"process": "serve"}),
        )
    ),
]
CLOCKS: list[Case] = [
    (f"10:00:00 {FRAME}", FRAME, "clock", no_date("10:00:00")),
    ("10:00:00", "", "clock", no_date("10:00:00")),
    ("10:00:00.123 pmap failed", "pmap failed", "clock", no_date("10:00:00", 123_000_000)),
    ("10:00:00,123   a", "  a", "clock", no_date("10:00:00", 123_000_000)),
    ("[10:00:00] a", "a", "clock", no_date("10:00:00")),
    ("[10:00:00.123]   a", "  a", "clock", no_date("10:00:00", 123_000_000)),
    ("[10:00:00] ", "", "clock", no_date("10:00:00")),
    ("10:00:00 5%|█ | 1/2 [00:27<00:00]", "5%|█ | 1/2 [00:27<00:00]", "clock", no_date("10:00:00")),
    (
        "00:10:00 ========= Invalid __global__ read",
        "========= Invalid __global__ read",
        "clock",
        no_date("00:10:00"),
    ),
    (f"{UNIX}.65 {FRAME}", FRAME, "epoch", epoch(SECONDS, 650_000_000)),
    (f"{UNIX}.651004789 a", "a", "epoch", epoch(SECONDS, 651_004_789)),
    (f"[{UNIX}.651]   a", "  a", "epoch", epoch(SECONDS, 651_000_000)),
    (f"{UNIX}.6 {UNIX}.5 a", "a", "epoch+epoch", epoch(SECONDS, 600_000_000)),
    (f"{UNIX}.6  0.5 -1.0e-3", " 0.5 -1.0e-3", "epoch", epoch(SECONDS, 600_000_000)),
    (f"{UNIX}.6 5 apples", "5 apples", "epoch", epoch(SECONDS, 600_000_000)),
]
BEFORE_OTHERS: list[Case] = [
    (
        "2026-11-29 10:00:00 ERROR 11-21 10:22:33 [core/x.py:9]   a",
        "  a",
        "stamp+vllm",
        {"level": "ERROR", **TEN},
    ),
    (
        "2026-11-29 10:00:00.123 (EngineCore_DP0 pid=64) ERROR 11-21 10:22:33 [core/x.py:9] a",
        "a",
        "stamp+tag+vllm",
        {"level": "ERROR", "process": "EngineCore_DP0 pid=64", "pid": 64, **MILLIS},
    ),
    (
        "Nov 29 10:00:00 ERROR 11-21 10:22:33 [core/x.py:9] a",
        "a",
        "ts+vllm",
        {"level": "ERROR", **no_year(NOV_29, "10:00:00")},
    ),
    (
        "10:00:00 ERROR 11-21 10:22:33 engine.py:9] a",
        "a",
        "clock+vllm",
        {"level": "ERROR", **no_date("10:00:00")},
    ),
    (
        "10:00:00 16:05:54.656 ERROR: a",
        "a",
        "clock+max",
        {"level": "ERROR", **no_date("10:00:00")},
    ),
    (
        f"{UNIX}.65 0.00.236.075 E a",
        "a",
        "epoch+llama_cpp",
        {"level": "ERROR", **epoch(SECONDS, 650_000_000)},
    ),
    (
        f"{UNIX}.65 [rank1]:   a",
        "  a",
        "epoch+rank",
        {"process": "rank1", "rank": 1, **epoch(SECONDS, 650_000_000)},
    ),
    (
        '10:00:00 {"level":"error","msg":"  a"}',
        "  a",
        "clock+json",
        {"level": "ERROR", **no_date("10:00:00")},
    ),
    (
        "svc-1  | 2026/11/29 10:00:00   a",
        "  a",
        "compose+stamp",
        {"process": "svc-1", **TEN},
    ),
    (
        "[2026-11-29 10:00:00] INFO 11-21 10:22:33 [a.py:1] b",
        "b",
        "sglang+vllm",
        {"level": "INFO", **TEN},
    ),
    (
        "INFO 11-21 10:22:33 [a.py:1] 10:00:00 b",
        "b",
        "vllm+clock",
        {"level": "INFO", **no_year(NOV_21, "10:22:33")},
    ),
]


def _record(text: str, known: dict[str, object], **fields: object) -> Case:
    return json.dumps(fields), text, "json", known


ERROR: dict[str, object] = {"level": "ERROR"}
RECORDS: list[Case] = [
    ('{"level":"INFO","message":"a"}', "a", "json", {"level": "INFO"}),
    (
        '{"level":"info","ts":1771114494.6510041,"caller":"serve/main.go:41","msg":"a"}',  # zap
        "a",
        "json",
        {"level": "INFO", **epoch(SECONDS, 651_004_000)},
    ),
    (
        '{"time":"2026-11-29T10:00:00.123456789+01:00","level":"WARN","msg":"\\"b\\" \\u00e9","n":{}}',
        '"b" é',
        "json",
        {"level": "WARNING", **epoch("2026-11-29T10:00:00+01:00", 123_456_789)},
    ),
    _record("  a", {"level": "ERROR", **TEN}, event="  a", level="error", timestamp="2026-11-29T10:00:00Z"),
    _record(
        "a",
        {"level": "CRITICAL", **MILLIS},
        asctime="2026-11-29 10:00:00,123",
        levelname="CRITICAL",
        message="a",
    ),
    _record(
        "a", {"level": "FATAL", **epoch(SECONDS, 651_000_000)}, level=60, time=1771114494651, pid=7, msg="a"
    ),
    _record("a", {"level": "ERROR", **epoch(SECONDS)}, level="error", time=UNIX, message="a\n"),
    _record("a", {"level": "ERROR", **epoch(SECONDS, 7)}, lvl="err", ts=UNIX * 10**9 + 7, msg="a"),
    _record("a", ERROR, severity="ERROR", message="a", time="yesterday"),
    _record("a", ERROR, **{"log.level": "error", "message": "a", "loss": float("nan")}),
    _record("\ufffd a", ERROR, level="error", msg="\udc80 a"),
    _record("", ERROR, level="error", msg=""),
]
STAMPED: list[Case] = [*DATED, *SYSLOG, *CLOCKS, *BEFORE_OTHERS, *RECORDS]

# What begins like a stamp or a record and is none.
UNSTAMPED = [
    "12:30:45 pm is when it died",
    "12:30:45 P.M.",
    "10:00:00 - 10:05:00 maintenance",
    "10:00:00 to 10:05:00",
    "10:00:00 10:05:00 00:05:00 job",
    "10:00:00, 5, 6",
    "25:00:00 a",
    "10:00 a",
    "10:00:00.0000000001 a",
    "00:00:27 ████▌     3/10",
    "[00:00:27] [####>---------] 3/10",
    "[00:00:27] Tokenize words ██████████ 0 / 0",
    "1771114494.65 1771114495.2 0.5",
    "1771114494.65 1771114495.2]],",
    "[1771114494.651]",
    "[1771114494.651, 2.0]",
    "1771114494 a",
    "2026/11/29 10:00:00.123, NVIDIA H200, 45 %",
    "2026-11-29 a",
    "2026-13-29 10:00:00 a",
    "2026-11-29 10:00:00abc",
    "Nov 29 2026 a",
    "1/2 [00:27<00:00, 1.09it/s]",
    '{"model":"a","messages":[{"role":"user","content":"CUDA error: x"}]}',
    '{"message":"CUDA error: x","time":"2026-11-29T10:00:00Z"}',
    '{"prompt":"{\\"level\\": \\"ERROR\\", \\"message\\": \\"x\\"}"}',
    '{"request":{"level":"ERROR","message":"x"}}',
    '{"level":"beginner","message":"x"}',
    '{"level":"ERROR","text":"x"}',
    '{"level":"ERROR","message":"cut off',
    '{"level":"ERROR","message":"x"} and more',
    '{"level":"ERROR","message":{"a":1}}',
]
