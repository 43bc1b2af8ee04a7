r"""The layers that loggers, launchers and transports put around a line, as data (formats.md 6).

A layer is recognised by the shape of its text, never by a version. All patterns are ASCII on purpose:
``\d`` and ``\w`` of the regex engine are Unicode-aware, slower, and give digits that no cast reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import polars as pl

KeyRole = Literal["container", "task", "fallback"]

# First characters that a layer can have. Rows are dealt out by these before any layer looks at them.
DIGIT, LETTER, BRACKET, PAREN, BRACE, HASH = "[0-9]", "[A-Za-z_]", r"\[", r"\(", r"\{", "#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One kind of prefix (or one kind of record that holds the message inside).

    Attributes:
        name: What ``LINES.envelope`` shows.
        opens: The classes of first characters, each one of the constants above.
        gate: Cheap regex without groups, matched at the start. Only rows that pass run ``pattern``.
        pattern: Matched at the start. Group ``prefix`` is what comes off; a layer that holds its message as
            an escaped string has ``msg`` instead, and may have ``rest`` (text to keep behind it) or ``more``
            (an escaped string that goes on the lines below). Other groups give:
            ``y yy mo mon d H M S frac zone`` a clock (which kind follows from which are there), ``unix`` and
            ``ms`` epoch seconds and milliseconds, ``boot`` seconds since boot, ``level``, ``stream``,
            ``pid``, ``rank``, ``key`` the process key.
        unless: Matched at the start: what passes the gate and is something else all the same.
        read: Takes the place of ``pattern`` where the order of fields is free: gives a frame with the groups
            as columns, ``msg`` among them, its escapes resolved.
        key_role: ``container``: joined outermost first. ``task``: names one process; the innermost wins.
            ``fallback``: stands only on some lines of a process, so it counts where no task is known.
    """

    name: str
    opens: tuple[str, ...]
    gate: str
    pattern: str = ""
    unless: str | None = None
    read: Callable[[pl.Series], pl.DataFrame] | None = None
    key_role: KeyRole | None = None

    @property
    def is_record(self) -> bool:
        """The message is a string inside the line, not what follows a prefix."""
        return self.read is not None or "(?P<msg>" in self.pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Coloured:
    """A prefix that only its colours tell from text, and the plain prefix that a layer knows.

    Attributes:
        coloured: Regex at the start of a line with terminal sequences.
        plain: What takes its place, with the groups of ``coloured``.
    """

    coloured: str
    plain: str


MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
Y = "(?P<y>(?:19|20)[0-9]{2})"  # bounded: nanoseconds of other centuries leave 64 bits
MO, D = "(?P<mo>0[1-9]|1[0-2])", "(?P<d>0[1-9]|[12][0-9]|3[01])"
MON = f"(?P<mon>{MONTH})"
PADDED_D = "(?P<d>[ 0-3]?[0-9])"
DAY = f"{Y}-{MO}-{D}"
TIME = "(?P<H>[01][0-9]|2[0-3]):(?P<M>[0-5][0-9]):(?P<S>[0-5][0-9]|60)"
FRAC = "(?P<frac>[0-9]{1,9})"
ZONE = "(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})"
LEVELS = "TRACE|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
LEVEL, LETTER_LEVEL = f"(?P<level>{LEVELS})", "(?P<level>[VDIWEFC])"
SGR = r"(?:\[[0-9;]*m)?"  # what is left of a colour code that lost its ESC (formats.md 6, Ray)
STRING = r'(?:[^"\\]|\\.)*'
# Crate path of Rust's tracing, after spans such as batch{size=1}:prefill{id=0}: if there are any.
SPANS = r"(?:(?:[a-z0-9_]+:)*[a-z0-9_]+\{[^}]*\}(?::[a-z0-9_]+(?:\{[^}]*\})?)*: |[a-z]+-[a-z]+: )?"
CRATE = "[a-z_][a-z0-9_]*(?:::[A-Za-z0-9_]+)*: "
UNIT = r"[A-Za-z0-9_@./()\\\-]+"
_SYSLOG_GATE = f"(?:{MONTH}) [ 0-3][0-9] [0-9]"
_SYSLOG = rf"{MON} {PADDED_D} {TIME}(?:\.{FRAC})? "
_HOST = r"[A-Za-z0-9_.\-]+"
_HOST_NO_WORD = r"[A-Za-z0-9_.\-]*[0-9.\-][A-Za-z0-9_.\-]*"
_MESSAGE_WORDS = "errors?|fail(?:ed|ure)|warning|info|debug|died|exited|exception|loss|took|time|version"
TAG_NAME = r"[A-Za-z_][A-Za-z0-9_.:<>\-]*"
PLACES = "(?: (?:DP|PP|TP|EP)[0-9]+)*"  # vLLM before 0.11 set them apart by blanks
TAG = rf"{SGR}\({TAG_NAME}{PLACES}(?: rank=[0-9]+)? pid=[0-9]+(?:, ip=[^)]*)?\){SGR}"
LAST_TAG = (
    rf"{SGR}\((?P<key>(?:(?:Worker_|VllmWorker )TP(?P<tp>[0-9]+)|{TAG_NAME}){PLACES}"
    rf"(?: rank=(?P<rank>[0-9]+))? pid=(?P<pid>[0-9]+)(?:, ip=[^)]*)?)\){SGR}"
)
# The kernel pads seconds to five places ("[%5lu.%06lu]"). Without that width or six digits it may be a
# printed tensor ("[ 0.123]").
BOOT = (
    r"(?P<boot> *[0-9]{1,9}\.[0-9]{6}"
    r"|(?: {4}[0-9]| {3}[0-9]{2}| {2}[0-9]{3}| [0-9]{4}|[0-9]{5,9})\.[0-9]{3,9})"
)
ISO_GATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:"
DATE_GATE = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:"


def prefix(pattern: str) -> str:
    """A pattern whose whole match comes off."""
    return f"^(?P<prefix>{pattern})"


# Transport: what carried the line. CRI has 7, 8 or 9 digits; iso syslog has none, 3 or 6 of them, which
# tells it from `docker logs -t` (9) and GitHub (7) before a message such as `foo bar[3]: x`.
TRANSPORT: tuple[Layer, ...] = (
    Layer(
        name="cri",
        opens=(DIGIT,),
        gate=ISO_GATE + "[^ ]* std",
        pattern=prefix(rf"{DAY}T{TIME}\.{FRAC}{ZONE} (?P<stream>stdout|stderr) [FP](?: |$)"),
    ),
    Layer(
        name="syslog",
        opens=(DIGIT,),
        gate=ISO_GATE + r"[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}|\.[0-9]{6})?(?:Z|[+-][0-9:]+) [A-Za-z0-9_.\-]+ ",
        pattern=prefix(
            rf"{DAY}T{TIME}(?:\.(?P<frac>[0-9]{{6}}|[0-9]{{3}}))?{ZONE} [A-Za-z0-9_.\-]+ "
            rf"(?P<key>kernel|{UNIT}\[(?P<pid>[0-9]+)\]):(?: |$)"
        ),
        key_role="container",
    ),
    Layer(
        name="tracing",  # Rust's tracing: TGI text, six digits; a logger, but it has to look before rfc3339
        opens=(DIGIT,),
        gate=ISO_GATE + r"[0-9]{2}:[0-9]{2}\.[0-9]{6}Z +[A-Z]",
        pattern=prefix(rf"{DAY}T{TIME}\.{FRAC}{ZONE} +{LEVEL} +{SPANS}{CRATE}"),
    ),
    Layer(
        name="rfc3339",  # docker logs -t, GitHub, kubectl --timestamps, dmesg iso: one shape
        opens=(DIGIT,),
        gate=ISO_GATE,
        pattern=prefix(rf"{DAY}T{TIME}(?:[.,]{FRAC})?{ZONE}(?: |$)"),
    ),
    # The beginning of these is all that moreutils' ts prints, so the words behind it decide what is a unit. A
    # pid of two digits makes one. Without a pid, or with the small one that an index looks like
    # (`tensor input_handles[0]: unmatched dtype`), it takes a unit that prints so, or a host whose name is
    # no word (`CUDA error: x` is a message).
    Layer(
        name="syslog",
        opens=(LETTER,),
        gate=_SYSLOG_GATE,
        pattern=prefix(rf"{_SYSLOG}(?:{_HOST} )?(?P<key>{UNIT}\[(?P<pid>[0-9]{{2,}})\]):(?: |$)"),
        key_role="container",
    ),
    Layer(
        name="syslog",
        opens=(LETTER,),
        gate=_SYSLOG_GATE,
        pattern=prefix(
            rf"{_SYSLOG}(?:{_HOST} )?(?P<key>(?:kernel|systemd[a-z\-]*)(?:\[(?P<pid>[0-9]+)\])?):(?: |$)"
        ),
        key_role="container",
    ),
    Layer(
        name="syslog",
        opens=(LETTER,),
        gate=_SYSLOG_GATE,
        pattern=prefix(
            rf"{_SYSLOG}{_HOST_NO_WORD} (?P<key>[a-z][a-z0-9_@./\-]*(?:\[(?P<pid>[0-9]+)\])?):(?: |$)"
        ),
        unless=rf"{_SYSLOG_GATE}[^ ]* [^ ]+ (?:{_MESSAGE_WORDS}):",
        key_role="container",
    ),
    Layer(
        name="compose",  # the replica number is needed: `name  | text` alone is any table
        opens=(LETTER,),
        gate=r"[A-Za-z][A-Za-z0-9_.\-]*[-_][0-9]+ +\|",
        pattern=prefix(r"(?P<key>[A-Za-z][A-Za-z0-9_.\-]*[-_][0-9]+) +\|(?: |$)(?:\[0m)?"),
        key_role="container",
    ),
    Layer(
        name="docker_json",
        opens=(BRACE,),
        gate=r'\{ ?"log": ?"',
        pattern=(
            rf'^\{{ ?"log": ?"(?P<msg>{STRING})", ?"stream": ?"(?P<stream>stdout|stderr)", ?'
            rf'(?:"attrs": ?\{{.*\}}, ?)?"time": ?"{DAY}T{TIME}(?:\.{FRAC})?{ZONE}" ?\}}\s*$'
        ),
    ),
    Layer(
        name="dmesg",
        opens=(BRACKET,),
        gate=r"\[ *[0-9]+\.[0-9]{3,}\]",
        pattern=prefix(rf"\[{BOOT}\](?:\[ *[TC][0-9]+\])?(?: |$)"),
    ),
    Layer(
        name="dmesg",
        opens=(BRACKET,),
        gate=r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ",
        pattern=prefix(rf"\[[A-Z][a-z]{{2}} {MON} {PADDED_D} {TIME} {Y}\](?: |$)"),
    ),
    # Buildkite marks lines with ESC _bk;t=<ms> BEL. `clean` turns that into the second form.
    Layer(
        name="buildkite",
        opens=(LETTER,),
        gate="_bk;t=[0-9]",
        pattern=prefix("_bk;t=(?P<ms>[0-9]{13})\x07?"),
    ),
    Layer(
        name="buildkite",
        opens=(LETTER,),
        gate="bk;t=[0-9]",
        pattern=prefix("bk;t=(?P<ms>[0-9]{13})\x07? ?"),
    ),
    Layer(
        name="ci_command",
        opens=(HASH,),
        gate=r"##\[[a-z]",
        pattern=prefix(r"##\[(?:(?P<level>error|warning|notice|debug)|group|endgroup|section|command)\]"),
    ),
)

# Launcher: who started the process. A tag with a pid names the process; [rankN] and [TPn] stand only on some
# of its lines (exception hooks, one logger), so they must not change the key of a process that has a tag.
LAUNCHER: tuple[Layer, ...] = (
    Layer(
        name="tag",  # Ray and vLLM; doubled tags come off together and the innermost is the process
        opens=(PAREN, BRACKET),
        gate=rf"{SGR}\([A-Za-z_][^ )]*{PLACES}(?: rank=[0-9]+)? pid=[0-9]",
        pattern=prefix(rf"(?:{TAG} )*{LAST_TAG}(?: |$)"),
        key_role="task",
    ),
    Layer(
        name="tag",
        opens=(PAREN, BRACKET),
        gate=rf"{SGR}\((?:raylet|gcs_server)[,)]",
        pattern=prefix(rf"{SGR}\((?P<key>(?:raylet|gcs_server)(?:, ip=[^)]*)?)\){SGR}(?: |$)"),
        key_role="task",
    ),
    Layer(
        name="rank",  # PyTorch's exception hook and c10: one space belongs to the tag
        opens=(BRACKET,),
        gate=r"\[rank[0-9]",
        pattern=prefix(r"\[(?P<key>rank(?P<rank>[0-9]+))\]: ?"),
        key_role="fallback",
    ),
    Layer(
        name="role",  # torchrun: local rank, which is no rank; it adds no space, so one that is there is text
        opens=(BRACKET,),
        gate=r"\[default[0-9]",
        pattern=prefix(r"\[(?P<key>default[0-9]+)\]:"),
        key_role="fallback",
    ),
)
