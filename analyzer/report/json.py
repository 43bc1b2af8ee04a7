"""The JSON report: the result itself, in the order of the schema, readable and diffable."""

from __future__ import annotations

import msgspec

from analyzer.report.plain import plain_json
from analyzer.schema import Result

INDENT = 2


def render(result: Result) -> bytes:
    """The whole result as UTF-8 JSON, two spaces deep, with a newline at the end."""
    data: bytes = msgspec.json.format(msgspec.json.encode(result), indent=INDENT)
    return (data if data.isascii() else plain_json(data.decode()).encode()) + b"\n"
