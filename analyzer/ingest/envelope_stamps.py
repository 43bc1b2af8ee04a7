"""Plain time stamps as envelope layers: what ``ts``, ``tmux`` pipes and short logger formats put first.

They come after the loggers, whose prefixes begin alike and say more. Exactly one blank belongs to a stamp:
what is behind it is the indentation of the message.
"""

from __future__ import annotations

from analyzer.ingest.envelope_layers import (
    BRACKET,
    DIGIT,
    FRAC,
    LETTER,
    LEVEL,
    LEVELS,
    MO,
    MON,
    MONTH,
    PADDED_D,
    TIME,
    ZONE,
    D,
    Layer,
    Y,
    prefix,
)

_DATE_GATE = "[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}"
_DATE = f"{Y}[-/]{MO}[-/]{D}[ T]{TIME}"
# Names of other zones are left: `2026-11-29 10:00:00 CUDA error` has the shape of one.
_ZONE = f"(?: ?{ZONE}| ?(?:UTC|GMT))?"
# ` - ` belongs to a stamp with a fraction ("%(asctime)s - %(message)s"), else to a list that ts stamped.
_DATED = rf"{_DATE}(?:[.,]{FRAC}(?: -)?)?{_ZONE}"
# gunicorn: pid and level in brackets; others: the level alone
_IN_BRACKETS = rf"(?:(?: \[(?P<pid>[0-9]+)\])? \[{LEVEL}\])?"
_BEHIND = r"(?: \||:)?(?: |$)"

# vLLM has level and date in this order. The layer "python" would take the level and leave the rest.
BEFORE_LOGGERS: tuple[Layer, ...] = (
    Layer(
        name="stamp",
        opens=(DIGIT,),
        gate=_DATE_GATE + rf"[^ ]* (?:{LEVELS}) [01][0-9]-[0-3][0-9][- ][0-9]",
        pattern=prefix(rf"{_DATE}(?:[.,]{FRAC})?{ZONE}? ") + f"(?:{LEVELS}) ",
    ),
)

_DATED_LAYERS: tuple[Layer, ...] = (
    Layer(
        name="stamp",
        opens=(DIGIT,),
        gate=_DATE_GATE + rf"[^|]{{0,15}} \| (?:{LEVELS}) *\|",
        pattern=prefix(rf"{_DATE}(?:[.,]{FRAC})?{_ZONE} \| {LEVEL} *\|(?: |$)"),
    ),
    Layer(
        name="stamp",
        opens=(DIGIT,),
        gate=_DATE_GATE,
        pattern=prefix(_DATED + _IN_BRACKETS + _BEHIND),
    ),
    Layer(
        name="stamp",
        opens=(BRACKET,),
        gate=r"\[" + _DATE_GATE,
        pattern=prefix(rf"\[{_DATE}(?:[.,]{FRAC})?{_ZONE}\]{_IN_BRACKETS}{_BEHIND}"),
    ),
    # The default of ts is the beginning of a line of syslog; that layer looks first, for a host and a unit.
    Layer(
        name="ts",
        opens=(LETTER,),
        gate=f"(?:{MONTH}) [ 0-3][0-9] [0-9]",
        pattern=prefix(rf"{MON} {PADDED_D} {TIME}(?:\.{FRAC})?(?: |$)"),
    ),
)

# A clock without a date can be a time of day in a sentence (`12:30:45 pm`), the first cell of a table
# (`10:00:00 10:05:00 5 jobs`), a span (`10:00:00 - 10:05:00`), or what a progress bar has used up so far. It
# is a stamp unless the text behind it says that. Bars count from 00:, so only those hours are looked at: a
# server's bar that ts stamped at half past midnight keeps its stamp as text, which loses nothing. The
# seconds of `ts -s` have the shape of a time of day and are taken for one: the order is right.
_CLOCK_GATE = r"[0-2][0-9]:[0-5][0-9]:[0-6][0-9](?:[.,][0-9]{1,9})?"
_BAR = r"[\u2588-\u258f\u2591-\u2593\u2501]|\[[#=>-]{2}"
_NO_STAMP = (
    rf"\[?(?:{_CLOCK_GATE}\]? (?:[AaPp]\.?[Mm](?:[^A-Za-z0-9_]|$)|(?:-|to|until) [0-9]{{1,2}}:"
    rf"| *[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?: |$))|00:.*(?:{_BAR}))"
)
_CLOCK_LAYERS: tuple[Layer, ...] = (
    Layer(
        name="clock",
        opens=(DIGIT,),
        gate=_CLOCK_GATE + "(?: |$)",
        pattern=prefix(rf"{TIME}(?:[.,]{FRAC})?(?: |$)"),
        unless=_NO_STAMP,
    ),
    Layer(
        name="clock",
        opens=(BRACKET,),
        gate=r"\[" + _CLOCK_GATE + r"\]:? ",
        pattern=prefix(rf"\[{TIME}(?:[.,]{FRAC})?\]:? "),
        unless=_NO_STAMP,
    ),
)

# Ten digits before the point: 2001 to 2065. In a printed row of numbers of that size it is the first of them;
# before smaller ones it is a stamp (values that a printer of tensors shows, behind `ts '%.s'`). A tensor of
# one element has nothing behind its bracket.
_UNIX_GATE = r"[12][0-9]{9}\.[0-9]{1,9}"
_UNIX = rf"(?P<unix>[12][0-9]{{9}})\.{FRAC}"
_NUMBERS = rf"\[?{_UNIX_GATE}[\], ]+-?[0-9]{{10,}}\.[0-9]*[-0-9.e+, ]*\]*,?$"
_EPOCH_LAYERS: tuple[Layer, ...] = (
    Layer(
        name="epoch",
        opens=(DIGIT,),
        gate=_UNIX_GATE + " ",
        pattern=prefix(f"{_UNIX} "),
        unless=_NUMBERS,
    ),
    Layer(
        name="epoch",
        opens=(BRACKET,),
        gate=r"\[" + _UNIX_GATE + r"\]:? ",
        pattern=prefix(rf"\[{_UNIX}\]:? "),
        unless=_NUMBERS,
    ),
)

STAMPS = _DATED_LAYERS + _CLOCK_LAYERS + _EPOCH_LAYERS
