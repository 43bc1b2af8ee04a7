"""Lines of clusters, log stores and build servers, two of each layer, with what each of them says."""

from __future__ import annotations

from tests.ingest.envelope_clocks import Case, epoch

_AT = "2026-05-22T12:43:46"
_MS = "1779453826962"
_SAID = epoch(_AT, 962_000_000)

STORES: list[Case] = [
    ("[pod/serve-0/main]   two spaces", "  two spaces", "pod", {"process": "serve-0/main"}),
    ("serve-7f9c4d8b5-x2x4z main x", "x", "pod", {"process": "serve-7f9c4d8b5-x2x4z main"}),
    ("\x1b[96mserve-0\x1b[0m \x1b[36mmain\x1b[0m x", "x", "pod", {"process": "serve-0/main"}),
    ("\x1b[36mserve    | \x1b[0m  x", "  x", "compose", {"process": "serve"}),
    (
        "serve.1.x5h3k2j9d0q1w8e7r6t5y4u3i@node7    | x",
        "x",
        "compose",
        {"process": "serve.1.x5h3k2j9d0q1w8e7r6t5y4u3i@node7"},
    ),
    (f"{_AT}.962000Z 00O x", "x", "gitlab", {"stream": "stdout", **_SAID}),
    (f"{_AT}.962000Z 01E+  x", "  x", "gitlab", {"stream": "stderr", **_SAID}),
    (
        f"{_AT}.962000+00:00 serve/main/0123456789abcdef   x",
        "  x",
        "cloudwatch",
        {"process": "serve/main/0123456789abcdef", **_SAID},
    ),
    (
        '{"ingestionTime": 1, "message": "x", "timestamp": ' + _MS + ', "logStreamName": "a/b"}',
        "x",
        "cloudwatch",
        {"process": "a/b", **_SAID},
    ),
    (f'{_AT}Z {{container="main"}}   x', "  x", "loki", {"process": 'container="main"', **epoch(_AT)}),
    (
        f'{{"labels":{{"pod":"p","container":"c"}},"line":"[rank0]: x","timestamp":"{_AT}.962Z"}}',
        "x",
        "loki+rank",
        {"process": "p/c/rank0", "rank": 0, **_SAID},
    ),
    (f"{_MS} x", "x", "epoch_ms", _SAID),
    (f"{_MS}\t{_AT}.962Z\tx", "x", "epoch_ms", _SAID),
    (f"job\tRun tests\t{_AT}.9620000Z x", "x", "github", {"process": "job", **_SAID}),
    (f"gpu 1\tUNKNOWN STEP\t\ufeff{_AT}.9620000Z x", "x", "github", {"process": "gpu 1", **_SAID}),
    (
        (
            '2026-05-22 12:43:46.962000000 +0000 kube.a: {"log":"x\\n","stream":"stderr",'
            '"kubernetes":{"pod_name":"p"}}'
        ),
        "x",
        "fluentd+fluentd",
        {"process": "p", "stream": "stderr", **_SAID},
    ),
    ('{"container_name":"/serve","source":"stdout","log":"x"}', "x", "fluentd",
     {"process": "serve", "stream": "stdout"}),
    ("[2026-05-22, 12:43:46 UTC] {subprocess.py:93} INFO -   x", "  x", "airflow", epoch(_AT)),
    ("[2026-05-22T12:43:46.962+0000] {pod_manager.py:468} INFO - [base] x", "x", "airflow", _SAID),
    (
        f'{{"MESSAGE":"x","_PID":"7","SYSLOG_IDENTIFIER":"python3","__REALTIME_TIMESTAMP":"{_MS}000"}}',
        "x",
        "journal",
        {"process": "python3[7]", "pid": 7, **_SAID},
    ),
    (
        f'{{"__REALTIME_TIMESTAMP" : "{_MS}000", "SYSLOG_IDENTIFIER" : "kernel", "MESSAGE" : "x"}}',
        "x",
        "journal",
        {"process": "kernel", **_SAID},
    ),
    (f'{{"ddsource":"python","service":"s","message":"x","timestamp":{_MS}}}', "x", "datadog",
     {"process": "s", **_SAID}),
    (f'{{"message":"x","ddtags":"a","timestamp":"{_AT}.962Z"}}', "x", "datadog", _SAID),
    (f'{{"textPayload":"x","timestamp":"{_AT}.962Z"}}', "x", "google_cloud", _SAID),
    (
        '{"resource":{"labels":{"container_name":"c","pod_name":"p"}},"textPayload":"x"}',
        "x",
        "google_cloud",
        {"process": "p/c"},
    ),
]  # fmt: skip
PLAIN = [
    "serve-0 main x",
    "worker-45678 died x",
    "[base] x",
    "1600000000000 bytes free",
    "1600000000000 1600000000001 1600000000002",
    "[pod/serve] x",
    '{"labels": 3}',
]
