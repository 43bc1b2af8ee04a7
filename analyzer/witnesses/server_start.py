"""Where a server starts, or a launcher starts its workers again: what failed before is over."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analyzer.model import Reading, Record, ServerStart
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen
from analyzer.witnesses.server_lines import read_server

NAME = "server_start"
# Who says that it starts something again needs no earlier start to compare with.
_AGAIN = frozenset({"torchrun", "systemd"})
_FORMS = (
    Form(rule="vllm", begins=r"^vLLM API server version [0-9]"),
    Form(rule="engine", begins=r"^Initializing an? (?:V1 )?LLM engine \(v"),
    Form(rule="sglang", begins=r"^server_args=ServerArgs\("),
    Form(rule="uvicorn", begins=r"^Started server process \["),
    Form(rule="torchrun", begins=r"[0-9]+/[0-9]+ attempts left; will restart worker group"),
    Form(rule="systemd", begins="Scheduled restart job, restart counter is at [0-9]"),
    Form(rule="ollama", begins=r"^starting (?:runner|llama server)"),
    Form(rule="llama_cpp", begins=r"^build: [0-9]+ \([0-9a-f]+\) with "),
    Form(rule="tensorrt_llm", begins=r"TensorRT[- ]LLM version: [0-9]"),
    Form(rule="record", begins=r"^\[RECORD\] START command="),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source. A line in which none of the forms begins is another program's."""
    return read_server(frame, fetch, NAME, _FORMS, {form.rule: _start for form in _FORMS})


def _start(seen: Seen) -> Sequence[Record]:
    """One record a line: a server that starts often prints the same line each time."""
    return [
        ServerStart(
            source=seen.source,
            line=line,
            process=seen.process,
            program=seen.rule,
            version=seen.get("VERSION"),
            again=seen.rule in _AGAIN,
        )
        for line in seen.lines
    ]


WITNESS = Witness(
    name=NAME,
    gates=(
        "vLLM API server version ",
        " LLM engine (v",
        "server_args=ServerArgs(",
        "Started server process [",
        " attempts left; will restart worker group",
        " restart counter is at ",
        "starting runner",
        "starting llama server",
        "build: ",
        "LLM version: ",
        "[RECORD] START ",
    ),
    read=read,
    grammar="server_start.lark",
)
