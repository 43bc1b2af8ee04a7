"""Log stores that hand a line on as a string inside a JSON object: one row each.

Which store it is, is told by a field that only it writes. The fields stand in any order.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from analyzer.ingest.envelope_json import as_iso, iso_clock
from analyzer.ingest.envelope_layers import BRACE, Layer


def carrier(
    name: str,
    *,
    field: str,
    message: str,
    time: str,
    key: tuple[str, ...] = (),
    pid: str | None = None,
    stream: str | None = None,
) -> Layer:
    """A layer for one store.

    Args:
        name: What ``LINES.envelope`` shows.
        field: Regex of the fields, one of which every object of the store has.
        message: Path of the line.
        time: Path of the time: ISO text, or a number since 1970 in seconds or a power of a thousandth.
        key: Paths of what names the process, outermost first; those that are there are joined by '/'.
        pid: Path of the process id, which is part of the key.
        stream: Path of ``stdout`` or ``stderr``.
    """
    return Layer(
        name=name,
        opens=(BRACE,),
        gate=rf'\{{.*"(?:{field})" ?:',
        read=_reader(message, time, key, pid, stream),
        key_role="container" if key else None,
    )


def _reader(
    message: str, time: str, key: tuple[str, ...], pid: str | None, stream: str | None
) -> Callable[[pl.Series], pl.DataFrame]:
    def read(text: pl.Series) -> pl.DataFrame:
        said = text.str.json_path_match(message).str.strip_suffix("\n")
        fields = {"msg": said}
        if pid is not None:
            fields["pid"] = text.str.json_path_match(pid)
        if stream is not None:
            fields["stream"] = text.str.json_path_match(stream)
        if key:
            fields["key"] = _key([text.str.json_path_match(path) for path in key], fields.get("pid"))
        clock = iso_clock(as_iso(text.str.json_path_match(time)))
        return pl.DataFrame(fields).hstack(clock)

    return read


def _key(names: list[pl.Series], pid: pl.Series | None) -> pl.Series:
    """``pod/container`` or ``python3[12]``; null where nothing names the process."""
    plain = [name.str.strip_prefix("/") for name in names]
    joined = pl.concat_str(plain, separator="/", ignore_nulls=True)
    if pid is not None:
        joined = pl.concat_str(joined, pl.lit("[") + pid + pl.lit("]"), ignore_nulls=True)
    return pl.select(pl.when(joined != "").then(joined)).to_series()


JSON_CARRIERS: tuple[Layer, ...] = (
    carrier(
        "journal",  # journalctl -o json
        field="__REALTIME_TIMESTAMP",
        message="$['MESSAGE']",
        time="$['__REALTIME_TIMESTAMP']",
        key=("$['CONTAINER_NAME','SYSLOG_IDENTIFIER','_COMM']",),
        pid="$['_PID']",
    ),
    carrier(
        "loki",  # logcli -o jsonl
        field="labels",
        message="$['line']",
        time="$['timestamp']",
        key=("$['labels']['pod']", "$['labels']['container','container_name','job']"),
        stream="$['labels']['stream']",
    ),
    carrier(
        "fluentd",  # records of container logs, also Fluent Bit's
        field="kubernetes|container_name",
        message="$['log']",
        time="$['time','@timestamp']",
        key=("$['kubernetes']['pod_name']", "$['kubernetes']['container_name']", "$['container_name']"),
        stream="$['stream','source']",
    ),
    carrier(
        "datadog",
        field="ddsource|ddtags",
        message="$['message']",
        time="$['timestamp','date']",
        key=("$['hostname','host']", "$['service']"),
    ),
    carrier(
        "cloudwatch",  # aws logs get-log-events and filter-log-events, an event a line
        field="ingestionTime",
        message="$['message']",
        time="$['timestamp']",
        key=("$['logStreamName']",),
    ),
    carrier(
        "google_cloud",
        field="textPayload",
        message="$['textPayload']",
        time="$['timestamp']",
        key=(
            "$['resource']['labels']['pod_name','instance_id']",
            "$['resource']['labels']['container_name']",
        ),
    ),
)
