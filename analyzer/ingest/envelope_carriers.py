r"""What clusters, log stores and build servers put before a line, as envelope layers: one row each.

See envelope_layers.py for the words. None of them gives a level: the severity that a carrier writes is that
of a pipe (``INFO`` for all that a task prints), not what the program says of its line.
"""

from __future__ import annotations

from analyzer.ingest.envelope_layers import (
    BRACKET,
    DATE_GATE,
    DAY,
    DIGIT,
    FRAC,
    ISO_GATE,
    LETTER,
    LEVELS,
    MO,
    TIME,
    ZONE,
    Coloured,
    D,
    Layer,
    Y,
    prefix,
)

_SGR = r"\x1b\[[0-9;]*m"
_DNS = r"[a-z0-9][a-z0-9.\-]*"
# The random end that Kubernetes gives a pod's name: no vowels, so that it is no word.
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_POD = rf"{_DNS}-{_RANDOM}"
_TAG = r"\[pod/[^\]/ ]+/[^\]/ ]+\]"
_STAMP = rf"{DAY}T{TIME}(?:[.,]{FRAC})?{ZONE}"
_STREAM_GATE = r"[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}|\.[0-9]{6})?\+00:00 "
# A path that is the first word of a message has a line number or the name of a source file at its end.
_STREAM = r"[A-Za-z0-9_.\-#]+(?:/[A-Za-z0-9_.\-#$\[\]]+)+"
_SOURCE_FILE = r"[^ ]*\.(?:py|cu|cuh|cc|cpp|h|hpp|mojo|rs|so|go)(?: |$)"
_LABELS = r'\{(?P<key>[A-Za-z_][A-Za-z0-9_]*="[^}]*)?\}'
_MS = "1[4-9][0-9]{11}"  # milliseconds since 1970: 2014 to 2033
_UNITS = "(?:bytes|[kKMGTmnu]?i?[Bs]|ms|us|ns)"

# Colours say what the plain text does not: where a name ends. They are put in the words of the layers below.
COLOURED: tuple[Coloured, ...] = (
    # Buildkite marks lines with ESC _bk;t=<ms> BEL: the one escape sequence that says something, the time.
    Coloured(coloured="^\x1b_(bk;t=[0-9]{13})\x07", plain="${1} "),
    # stern, by the name of any pod; the namespace stands first where it follows several
    Coloured(
        coloured=rf"^(?:{_SGR})+(?:{_DNS}(?:{_SGR})+ (?:{_SGR})+)?({_DNS}-[a-z0-9.\-]+)(?:{_SGR})+ "
        rf"(?:{_SGR})+({_DNS})(?:{_SGR})+ ",
        plain="[pod/${1}/${2}] ",
    ),
    # docker compose with container_name: no replica number tells it from a table
    Coloured(
        coloured=rf"^(?:{_SGR})+([A-Za-z0-9][A-Za-z0-9_.\-]*) +\|(?: (?:{_SGR})+|(?:{_SGR})+ )",
        plain="[compose/${1}] ",
    ),
)

CARRIERS: tuple[Layer, ...] = (
    Layer(
        name="pod",  # kubectl logs --prefix
        opens=(BRACKET,),
        gate=_TAG,
        pattern=prefix(r"\[pod/(?P<key>[^\]/ ]+/[^\]/ ]+)\](?: |$)"),
        key_role="container",
    ),
    Layer(
        name="pod",  # stern into a file; a name of a StatefulSet (`serve-0 main x`) could be any text
        opens=(LETTER,),
        gate=rf"{_POD} [a-z0-9]",
        pattern=prefix(rf"(?P<key>{_POD} {_DNS}) "),
        unless=rf"{_DNS}-[0-9]{{5}} ",
        key_role="container",
    ),
    Layer(
        name="compose",
        opens=(BRACKET,),
        gate=r"\[compose/[A-Za-z0-9]",
        pattern=prefix(r"\[compose/(?P<key>[^\] ]+)\] "),
        key_role="container",
    ),
    Layer(
        name="compose",  # docker service logs
        opens=(LETTER,),
        gate=r"[A-Za-z][A-Za-z0-9_\-]*\.[0-9]+\.[a-z0-9]{25}@",
        pattern=prefix(r"(?P<key>[A-Za-z][A-Za-z0-9_\-]*\.[0-9]+\.[a-z0-9]{25}@[^ ]+) +\|(?: |$)"),
        key_role="container",
    ),
    Layer(
        name="gitlab",  # stream number, O or E, `+` where a line goes on
        opens=(DIGIT,),
        gate=ISO_GATE + r"[^ ]*Z [0-9a-f]{2}[OE](?:[+ ]|$)",
        pattern=prefix(rf"{_STAMP} [0-9a-f]{{2}}(?P<stream>[OE])(?:[+ ]|$)"),
    ),
    Layer(
        name="cloudwatch",  # aws logs tail
        opens=(DIGIT,),
        gate=ISO_GATE + _STREAM_GATE + r"[A-Za-z0-9]",
        pattern=prefix(rf"{_STAMP} (?P<key>{_STREAM})(?: |$)"),
        unless=ISO_GATE + _STREAM_GATE + _SOURCE_FILE,
        key_role="container",
    ),
    Layer(
        name="loki",  # logcli: one blank belongs to it, more can be the indentation of the message
        opens=(DIGIT,),
        gate=ISO_GATE + r'[^ ]* \{(?:[A-Za-z_][A-Za-z0-9_]*="|\}(?: |$))',
        pattern=prefix(rf"{_STAMP} {_LABELS}(?: |$)"),
        key_role="container",
    ),
    Layer(
        name="epoch_ms",  # exports of CloudWatch and Grafana, which puts the same time behind it as text
        opens=(DIGIT,),
        gate=_MS + r"[ \t]",
        pattern=prefix(rf"(?P<ms>{_MS})(?:\t[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9:.]+Z\t|[ \t])"),
        unless=rf"{_MS}[ \t]+(?:-?[0-9.]+(?:[ ,\t]|$)|{_UNITS}\b)",
    ),
    Layer(
        name="github",  # gh run view --log: job, step, then the line as the runner stamped it
        opens=(LETTER,),
        gate=r"[A-Za-z_][A-Za-z0-9_ .,()/=\-]*\t[^\t]+\t\x{feff}?" + ISO_GATE,
        pattern=prefix(rf"(?P<key>[^\t]+)\t[^\t]+\t\x{{feff}}?{_STAMP}(?: |$)"),
        key_role="container",
    ),
    Layer(
        name="fluentd",  # out_stdout: the record follows as JSON
        opens=(DIGIT,),
        gate=DATE_GATE + r"[0-9:.]+ [+\-][0-9]{4} [A-Za-z0-9_.*\-]+: \{",
        pattern=prefix(rf"{DAY} {TIME}(?:\.{FRAC})? {ZONE} [A-Za-z0-9_.*\-]+: "),
    ),
    Layer(
        name="fluentd",  # out_file: time, tag, record
        opens=(DIGIT,),
        gate=ISO_GATE + r"[^ \t]*\t[^ \t]+\t\{",
        pattern=prefix(rf"{_STAMP}\t[^ \t]+\t"),
    ),
    Layer(
        name="airflow",  # `{subprocess.py:93}` hands on what a task prints; a pod's lines have its container
        opens=(BRACKET,),
        gate=r"\[[0-9]{4}-[0-9]{2}-[0-9]{2}[, T][^\]]*\] \{",
        pattern=prefix(
            rf"\[{Y}-{MO}-{D}(?:, |[ T]){TIME}(?:[.,]{FRAC})?(?: ?{ZONE}| [A-Z]{{3,4}})?\] "
            rf"\{{[^}}]+:[0-9]+\}} (?:{LEVELS}) - (?:\[base\] )?"
        ),
    ),
)
