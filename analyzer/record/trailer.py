"""The recorder's own lines in a log: what was started, with which switches, how it ended, on what.

Each begins with ``[RECORD] ``, then one word of ``WORDS``, then ``key=value`` pairs. A value with blanks,
quotes or nothing in it is a JSON string, all others stand bare::

    [RECORD] START command="python serve.py" target=torch level=ops host=gpu-7 file=0
    [RECORD] SET name=CUDA_COREDUMP_SHOW_PROGRESS value=1
    [RECORD] CHILD pid=4242
    [RECORD] OPS pid=4250 ops=812 lost=0
    [RECORD] STEP n=7
    [RECORD] DONE stream=0 device=cuda:0 id=243 op=aten::mul left=244-260,262
    [RECORD] EXIT signal=SIGSEGV code=139 duration_s=12.345
    [RECORD] VERSION driver=580.65 cuda=13.0 torch=2.11.0 max=26.7
    [RECORD] GPU index=0 name="NVIDIA H200" memory_mib=143771
    [RECORD] END bytes=123456 lost_bytes=0 unterminated=stderr open=none

``EXIT`` has ``signal`` only if one ended the command; ``code`` is what the shell would see. ``unterminated``
names the streams whose last line had no line end of its own, ``open`` those that another process still held.
An unknown version is left out. A log without ``EXIT`` is one whose recorder was killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import msgspec

from analyzer.schema import Value

PREFIX = "[RECORD] "
WORDS = frozenset({"START", "SET", "CHILD", "OPS", "STEP", "DONE", "EXIT", "VERSION", "GPU", "END"})
_BARE = re.compile(r'[^\s"=]+')
_PAIR = re.compile(r'(?<![\w.\-])([A-Za-z_][\w.\-]*+)=("(?:[^"\\]|\\.)*+"|[^\s"]+)')

Pairs = dict[str, str]


class Trailer(Value):
    """The own lines of one recording, read back. Null = that line is not there (yet).

    ``switches`` by name; ``gpus`` one mapping a device; ``unterminated`` and ``open_streams`` are stream
    names.
    """

    command: str | None = None
    target: str | None = None
    level: str | None = None
    pid: int | None = None
    switches: dict[str, str] = msgspec.field(default_factory=dict)
    exit_code: int | None = None
    signal: str | None = None
    duration_s: float | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    gpus: list[dict[str, str]] = msgspec.field(default_factory=list)
    lost_bytes: int | None = None
    unterminated: list[str] = msgspec.field(default_factory=list)
    open_streams: list[str] = msgspec.field(default_factory=list)


def render_line(word: str, pairs: Mapping[str, object]) -> str:
    """One own line, without a line end. Pairs whose value is null are left out."""
    parts = [f"{key}={_value(str(value))}" for key, value in pairs.items() if value is not None]
    return PREFIX + " ".join([word, *parts])


def _value(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text)


def parse_line(text: str) -> tuple[str, Pairs] | None:
    """Word and pairs of an own line; null = not one of ours."""
    if not text.startswith(PREFIX):
        return None
    word, _, rest = text.removeprefix(PREFIX).rstrip("\n").partition(" ")
    if word not in WORDS or _PAIR.sub("", rest).strip():
        return None
    return word, {key: json.loads(v) if v[0] == '"' else v for key, v in _PAIR.findall(rest)}


def parse_trailer(lines: Iterable[str]) -> Trailer:
    """Collect the own lines of a log.

    Args:
        lines: Texts without their stamps; all other lines are skipped.
    """
    found: dict[str, object] = {}
    switches: Pairs = {}
    gpus: list[Pairs] = []
    for line in lines:
        own = parse_line(line)
        if own is None:
            continue
        word, pairs = own
        if word == "SET":
            switches[pairs["name"]] = pairs["value"]
        elif word == "GPU":
            gpus.append(pairs)
        else:
            found.update(_fields(word, pairs))
    return Trailer(switches=switches, gpus=gpus, **found)  # type: ignore[arg-type]


def _fields(word: str, pairs: Pairs) -> dict[str, object]:
    if word == "START":
        return {key: pairs.get(key) for key in ("command", "target", "level")}
    if word == "CHILD":
        return {"pid": _int(pairs, "pid")}
    if word == "EXIT":
        duration = pairs.get("duration_s")
        return {
            "exit_code": _int(pairs, "code"),
            "signal": pairs.get("signal"),
            "duration_s": None if duration is None else float(duration),
        }
    if word == "VERSION":
        return {"versions": pairs}
    if word == "END":
        return {
            "lost_bytes": _int(pairs, "lost_bytes"),
            "unterminated": _names(pairs.get("unterminated")),
            "open_streams": _names(pairs.get("open")),
        }
    return {}


def _int(pairs: Pairs, key: str) -> int | None:
    return int(pairs[key]) if key in pairs else None


def _names(text: str | None) -> list[str]:
    return [] if text in {None, "none"} else str(text).split(",")
