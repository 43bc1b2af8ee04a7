"""Lines of containers, launchers and kernels, with what each of them says (formats.md 6)."""

from __future__ import annotations

from tests.ingest.envelope_clocks import FEB_19, JAN_1, NOV_3, NOV_18, NOV_21, Case, epoch, no_year

CARRIERS: list[Case] = [
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
]
