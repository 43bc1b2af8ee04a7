"""The prefixes under which other programs hand a log on, as they really write them: one row each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

Lines = Sequence[str]
Wrapper = Callable[[Lines], list[str]]

_BEGIN = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
_STEP = timedelta(milliseconds=1)
POD = "serve-7f9c4d8b5-x2x4z"


def _at(number: int) -> datetime:
    return _BEGIN + number * _STEP


def _millis(number: int) -> int:
    return round(_at(number).timestamp() * 1000)


def _plain(form: str) -> Wrapper:
    """Each line in a form; ``{time:...}`` takes a format of ``strftime``."""

    def wrap(lines: Lines) -> list[str]:
        return [
            form.format(line=line, time=_at(number), ms=_millis(number)) for number, line in enumerate(lines)
        ]

    return wrap


def _records(fields: Callable[[str, int], Mapping[str, object]]) -> Wrapper:
    """Each line as a string in a JSON object."""

    def wrap(lines: Lines) -> list[str]:
        return [json.dumps(fields(line, number), ensure_ascii=False) for number, line in enumerate(lines)]

    return wrap


def _iso(number: int) -> str:
    return f"{_at(number):%Y-%m-%dT%H:%M:%S.%f}Z"


def _journal(line: str, number: int) -> dict[str, object]:
    odd = any(ord(character) < 32 and character not in "\n\t" for character in line)
    return {
        "_HOSTNAME": "node7",
        "PRIORITY": "6",
        "__REALTIME_TIMESTAMP": str(_millis(number) * 1000),
        "SYSLOG_IDENTIFIER": "python3",
        "MESSAGE": list(line.encode("utf-8", "replace")) if odd else line,
        "_PID": "4711",
        "_SYSTEMD_UNIT": "serve.service",
    }


def gitlab(lines: Lines) -> list[str]:
    """The job's log as the runner stamps it, with a section around it."""
    return [f"{_iso(number)} 00{'OE'[number % 2]} {line}" for number, line in enumerate(lines)]


PREFIXES: dict[str, Wrapper] = {
    "cri": _plain("{time:%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {line}"),
    "kubectl": _plain(f"[pod/{POD}/main] {{line}}"),
    "kubectl with stamps": _plain(f"[pod/serve-0/main] {{time:%Y-%m-%dT%H:%M:%S.%f}}000Z {{line}}"),
    "stern": _plain(f"{POD} main {{line}}"),
    "stern in colour": _plain("\x1b[96mserve-0\x1b[0m \x1b[36mmain\x1b[0m {line}"),
    "compose": _plain("serve-1    | {line}"),
    "compose in colour": _plain("\x1b[36mserve    | \x1b[0m{line}"),
    "swarm": _plain("max_serve.1.x5h3k2j9d0q1w8e7r6t5y4u3i@node7    | {line}"),
    "journal short-precise": _plain("{time:%b %d %H:%M:%S.%f} node7 python3[4711]: {line}"),
    "journal short-iso": _plain("{time:%Y-%m-%dT%H:%M:%S}+0000 node7 python3[4711]: {line}"),
    "journal json": _records(_journal),
    "gitlab": gitlab,
    "jenkins": _plain("[{time:%Y-%m-%dT%H:%M:%S}.123Z] {line}"),
    "airflow": _plain("[{time:%Y-%m-%d, %H:%M:%S} UTC] {{subprocess.py:93}} INFO - {line}"),
    "airflow 3": _plain("[{time:%Y-%m-%dT%H:%M:%S}.123+0000] {{pod_manager.py:468}} INFO - [base] {line}"),
    "cloudwatch": _plain("{time:%Y-%m-%dT%H:%M:%S.%f}+00:00 serve/main/0123456789abcdef0123456789abcdef {line}"),
    "cloudwatch export": _plain("{ms} {line}"),
    "loki": _plain('{time:%Y-%m-%dT%H:%M:%S}Z {{container="main", pod="serve-0"}} {line}'),
    "loki jsonl": _records(
        lambda line, number: {
            "labels": {"container": "main", "pod": "serve-0"},
            "line": line,
            "timestamp": _iso(number),
        }
    ),
    "github": _plain("{time:%Y-%m-%dT%H:%M:%S.%f}0Z {line}"),
    "gh run view": _plain("serve (gpu, 1)\tRun tests\t{time:%Y-%m-%dT%H:%M:%S.%f}0Z {line}"),
    "fluentd": _records(
        lambda line, number: {
            "time": _iso(number),
            "stream": "stderr",
            "log": f"{line}\n",
            "kubernetes": {"pod_name": POD, "container_name": "main"},
        }
    ),
    "datadog": _records(
        lambda line, number: {
            "ddsource": "python",
            "service": "serve",
            "hostname": "node7",
            "status": "info",
            "message": line,
            "timestamp": _millis(number),
        }
    ),
}
