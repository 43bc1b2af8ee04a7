"""Takes off what transports, launchers and loggers put around a line (formats.md 6 and 7).

Everything works on whole columns. Most lines of an op log have no envelope, so one regex that joins the
gates of all layers sorts them out first; only the others are cleaned, peeled and put back in order.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analyzer.ingest.envelope_carriers import CARRIERS, COLOURED
from analyzer.ingest.envelope_clock import clock_updates
from analyzer.ingest.envelope_json import JSON_RECORDS
from analyzer.ingest.envelope_json_carriers import JSON_CARRIERS
from analyzer.ingest.envelope_layers import LAUNCHER, TRANSPORT, Layer
from analyzer.ingest.envelope_loggers import LOGGER
from analyzer.ingest.envelope_stamps import BEFORE_LOGGERS, STAMPS

LAYERS: Final[tuple[Layer, ...]] = (
    CARRIERS + TRANSPORT + LAUNCHER + BEFORE_LOGGERS + LOGGER + JSON_CARRIERS + JSON_RECORDS + STAMPS
)
MAX_ROUNDS = 8  # real lines carry 3 or 4 layers (formats.md 6)
PREFIX_CHARACTERS = 2048  # the longest prefixes are doubled process tags, some 200

LINES_SCHEMA: Final[dict[str, type[pl.DataType]]] = {
    "source": pl.UInt16,
    "line": pl.UInt32,
    "text": pl.String,
    "raw": pl.String,
    "time_ns": pl.Int64,
    "clock": pl.String,
    "process": pl.String,
    "rank": pl.Int32,
    "pid": pl.Int64,
    "level": pl.String,
    "stream": pl.String,
    "envelope": pl.String,
}

_GATES = "(?:" + "|".join(dict.fromkeys(layer.gate for layer in LAYERS)) + ")"
_OPENS = tuple(dict.fromkeys(opens for layer in LAYERS for opens in layer.opens))
_KNOWN = f"^{_GATES}"
_CONTROL = "[\x00\x1b\r\n]"
_NOISE = (
    "\x00"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI, also one that was cut off
    r"|\x1b[\]_P^X][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, APC and the other strings
    r"|\x1b[()*+#%][0-9A-Za-z]|\x1b[=>78cDEHMNOZ]?"  # character sets, single escapes, a lone one
    r"|\r+$"
)
# Ray leaves out what other workers print as well (formats.md 6); the count is read from the raw line.
_REPEATED = r" \[repeated [0-9]+x across cluster\](?: \(Ray deduplicates logs by default\..*)?$"
# A colour code without ESC, in front of a known prefix or at the end of the line (formats.md 7.5).
_ORPHAN_FIRST = r"^(?:\[[0-9]{1,3}(?:;[0-9]{1,3})*m)+"
_ORPHAN_LAST = r"(?:\[(?:0|0;0|22|39|49)m)+$"
# A progress bar without line end: what follows is glued to it (formats.md 7.1), be it what the shell says
# when the process dies there.
_BAR_END = r"(?:/s|/it)\]"
_DEATH = (
    r"(?:[^\s:]+: line [0-9]+: +[0-9]+ )?(?:Killed|Aborted|Segmentation fault|Bus error|Illegal instruction)"
    r"(?: +\(core dumped\)| {2,}\S| *\r?$)"
)
_GLUED = rf"((?:it|tok|toks|B)/s\]|s/it\])({_GATES}|{_DEATH})"

_STATE = {
    "text": pl.String,
    "at": pl.UInt64,  # row of the input in the high half, piece of the line in the low half
    "time_ns": pl.Int64,
    "clock": pl.String,
    "container": pl.String,
    "task": pl.String,
    "rank": pl.Int32,
    "pid": pl.Int64,
    "level": pl.String,
    "stream": pl.String,
    "envelope": pl.String,
}
_EMPTY = ("container", "task", "envelope")  # text of which '' means none; the others are null
_PIECE_BITS = 32

_LEVEL_NAMES = {
    "V": "DEBUG",
    "D": "DEBUG",
    "I": "INFO",
    "W": "WARNING",
    "E": "ERROR",
    "F": "FATAL",
    "C": "CRITICAL",
    "WARN": "WARNING",
    "NOTICE": "INFO",
}
_STREAMS = {"O": "stdout", "E": "stderr"}
_ESCAPES = {
    "\\\\": "\\",
    '\\"': '"',
    "\\/": "/",
    "\\n": "\n",
    "\\r": "\r",
    "\\t": "\t",
    "\\b": "\b",
    "\\f": "\f",
    "\\a": "\a",
    "\\v": "\v",
}
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE = r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"


def strip(lines: pl.DataFrame) -> pl.DataFrame:
    """Take the envelope off every line and keep what it says.

    Args:
        lines: source u16, line u32, raw str (without line end; null counts as empty), any order.

    Returns:
        ``LINES`` (``model``), in the order given. A line with inner carriage returns (progress bars), with
        a line end inside its JSON string, or with a record glued to a progress bar gives several rows
        with the same ``line`` and ``raw``; each line gives at least one. Indentation of the message stays.

        ``time_ns`` is that of the outermost clock with a full date, else of the first one found; a clock
        without zone counts as UTC. Kind by ``clock``: ``epoch`` since 1970, ``no_year`` since 1 January of
        a year of 365 days, ``no_date`` since midnight, ``boot`` since boot. ``process``: container keys
        outermost first, then the key of the process, joined by '/'. ``pid``, ``rank`` and ``level`` come
        from the innermost layer that knows them, except that a logger never overrides the pid or rank of
        a launcher. Levels are upper case words. Null = the line does not tell.

    Raises:
        polars.exceptions.ColumnNotFoundError: A column is missing.
    """
    frame = lines.select(
        pl.col("source").cast(pl.UInt16), pl.col("line").cast(pl.UInt32), pl.col("raw").fill_null("")
    )
    raw = frame.get_column("raw")
    touched = raw.str.contains(f"{_CONTROL}|{_KNOWN}") | _is_glued(raw) | _has_orphan(raw)
    if not touched.any():
        return _plain(frame)
    return _strip_touched(frame, touched)


def _strip_touched(frame: pl.DataFrame, touched: pl.Series) -> pl.DataFrame:
    """Strip the rows of ``touched`` and put them back between the others."""
    numbered = frame.with_row_index("at").with_columns(pl.col("at").cast(pl.UInt64) * 2**_PIECE_BITS)
    found = _peel_all(numbered.filter(touched).select(pl.col("raw").alias("text"), "at"))
    whole = numbered.filter(touched)
    rows = (
        found.with_columns((pl.col("at") // 2**_PIECE_BITS * 2**_PIECE_BITS).alias("whole"))
        .join(whole, left_on="whole", right_on="at", how="left", maintain_order="left")
        .with_columns(_process().alias("process"))
        .select(*LINES_SCHEMA, "at")
    )
    if whole.height == frame.height:
        return rows.sort("at").drop("at")
    untouched = _plain(numbered.filter(~touched)).with_columns(numbered.filter(~touched).get_column("at"))
    return pl.concat([untouched, rows]).sort("at").drop("at")


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """``LINES`` of lines that are their own payload."""
    known = {
        "source": pl.col("source"),
        "line": pl.col("line"),
        "text": pl.col("raw"),
        "raw": pl.col("raw"),
        "process": pl.lit("", dtype=pl.String),
        "envelope": pl.lit("", dtype=pl.String),
    }
    return frame.select(
        known.get(name, pl.lit(None, dtype=dtype)).alias(name) for name, dtype in LINES_SCHEMA.items()
    )


def _peel_all(rows: pl.DataFrame) -> pl.DataFrame:
    """Strip all layers, cut the lines that hold several, strip the pieces; columns ``_STATE``."""
    fresh = {name: dtype for name, dtype in _STATE.items() if name not in {"text", "at"}}
    state = rows.with_columns(
        pl.lit("" if name in _EMPTY else None, dtype=dtype).alias(name) for name, dtype in fresh.items()
    )
    state = _peel_layers(state)
    text = state.get_column("text")
    many, single = _split(state, text.str.contains("[\r\n]") | _is_glued(text))
    if many.is_empty():
        return single
    return pl.concat([single, _peel_layers(_cut(many))])


def _peel_layers(rows: pl.DataFrame) -> pl.DataFrame:
    """Take one layer off each row, round by round, until no row has one that is known."""
    done = []
    for _ in range(MAX_ROUNDS):
        rows = _clean(rows)
        rows, finished = _split(rows, pl.col("text").str.contains(_KNOWN))
        done.append(finished)
        if rows.is_empty():
            break
        rows, finished = _peel_once(rows)
        done.append(finished)
    return pl.concat([*done, _clean(rows)])


def _peel_once(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that lost a layer, and rows that no layer fits."""
    peeled = []
    finished = []
    for opens in _OPENS:
        left, rows = _split(rows, pl.col("text").str.contains(f"^{opens}"))
        for layer in LAYERS:
            if left.is_empty():
                break
            if opens in layer.opens:
                taken, left = _take(layer, left)
                peeled.append(taken)
        finished.append(left)
    return pl.concat(peeled) if peeled else rows.clear(), pl.concat([*finished, rows])


def _split(rows: pl.DataFrame, mask: pl.Expr | pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows where ``mask`` holds, and the others; no copy where all are on one side."""
    chosen = rows.select(mask.alias("m")).get_column("m")
    count = chosen.sum()
    if count == rows.height:
        return rows, rows.clear()
    if not count:
        return rows.clear(), rows
    return rows.filter(chosen), rows.filter(~chosen)


def _is_glued(text: pl.Series) -> pl.Series:
    """Whether a known prefix stands right behind the end of a progress bar."""
    bar = text.str.contains(_BAR_END)
    return bar & text.zip_with(bar, pl.Series([""])).str.contains(_GLUED) if bar.any() else bar


def _has_orphan(text: pl.Series) -> pl.Series:
    return text.str.ends_with("m") & text.str.contains(_ORPHAN_LAST) | text.str.contains(_ORPHAN_FIRST)


def _clean(rows: pl.DataFrame) -> pl.DataFrame:
    """Remove NUL, terminal sequences, trailing carriage returns, and colour codes that lost their ESC."""
    text = pl.col("text")
    noisy, quiet = _split(rows, text.str.contains("[\x00\x1b]|\r$"))
    if not noisy.is_empty():
        noisy = noisy.with_columns(_uncoloured(text).str.replace_all(_NOISE, ""))
    rows = pl.concat([quiet, noisy])
    folded, rows = _split(rows, text.str.contains("x across cluster]", literal=True))
    if not folded.is_empty():
        rows = pl.concat([rows, folded.with_columns(text.str.replace(_REPEATED, ""))])
    orphan, rows = _split(rows, text.str.ends_with("m") & text.str.contains(_ORPHAN_LAST))
    if not orphan.is_empty():
        rows = pl.concat([rows, orphan.with_columns(text.str.replace(_ORPHAN_LAST, ""))])
    orphan, rows = _split(rows, text.str.contains(_ORPHAN_FIRST))
    if not orphan.is_empty():
        bare = text.str.replace(_ORPHAN_FIRST, "")
        bare = pl.when(bare.str.contains(_KNOWN)).then(bare).otherwise(text)
        rows = pl.concat([rows, orphan.with_columns(bare)])
    return rows


def _uncoloured(text: pl.Expr) -> pl.Expr:
    """The text, the prefixes that only colours show in plain words."""
    for one in COLOURED:
        text = text.str.replace(one.coloured, one.plain)
    return text


def _cut(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each line inside a line; blank states of a progress bar are dropped.

    Blank lines of a JSON string stay: they separate the stacks of a traceback (observed.md 10).
    """
    text = pl.col("text").str.replace_all(_GLUED, "${1}\r${2}")
    pieces = text.str.replace_all("\r+\n", "\n").str.replace_all("\r+", "\r\n").str.split("\n")
    return (
        rows.with_columns(pieces)
        .with_columns(pl.col("at") + pl.int_ranges(0, pl.col("text").list.len(), dtype=pl.UInt64))
        .explode("text", "at")
        .filter(~pl.col("text").str.contains(r"^\s*\r$"))
        .with_columns(pl.col("text").str.strip_suffix("\r"))
        .select(rows.columns)
    )


def _take(layer: Layer, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that ``layer`` fits, without it and with what it says, and the others as they were."""
    mask = pl.col("text").str.contains(f"^{layer.gate}")
    if layer.unless is not None:
        mask &= ~pl.col("text").str.contains(f"^(?:{layer.unless})")
    hit, left = _split(rows, mask)
    if hit.is_empty():
        return hit, left
    groups = _groups(layer, hit.get_column("text"))
    both = hit.hstack(groups.rename({name: f"@{name}" for name in groups.columns}))
    fits, misses = _split(both, pl.col("@msg" if layer.is_record else "@prefix").is_not_null())
    if fits.is_empty():
        return hit.clear(), rows
    if layer.is_record and layer.read is None:
        escaped = [fits.get_column(f"@{name}") for name in groups.columns if name in {"msg", "more"}]
        fits = fits.with_columns(_unescape(text).str.strip_suffix("\n") for text in escaped)
    taken = fits.with_columns(_updates(layer, set(groups.columns))).select(hit.columns)
    return taken, pl.concat([left, misses.select(hit.columns)])


def _groups(layer: Layer, text: pl.Series) -> pl.DataFrame:
    if layer.read is not None:
        return layer.read(text)
    return _head(text, layer).str.extract_groups(layer.pattern).struct.unnest()


def _head(text: pl.Series, layer: Layer) -> pl.Series:
    """The part of the text where a prefix can be: captures of a 100 MB line would take ten seconds."""
    longest = text.str.len_bytes().max()
    if layer.is_record or not isinstance(longest, int) or longest <= PREFIX_CHARACTERS:
        return text
    return text.str.head(PREFIX_CHARACTERS)


def _updates(layer: Layer, groups: set[str]) -> list[pl.Expr]:
    """The new values of the state columns that ``layer`` says something about."""
    updates = [_message(layer, groups).alias("text"), _appended("envelope", pl.lit(layer.name), "+")]
    launched = layer.key_role is not None
    if "level" in groups:
        level = pl.col("@level").str.strip_chars(": ").str.to_uppercase().replace(_LEVEL_NAMES)
        updates.append(pl.coalesce(level, "level").alias("level"))
    if "stream" in groups:
        updates.append(pl.coalesce("stream", pl.col("@stream").replace(_STREAMS)).alias("stream"))
    for name, dtype, sources in (("pid", pl.Int64, ("pid",)), ("rank", pl.Int32, ("rank", "tp"))):
        new = [pl.col(f"@{group}").cast(dtype, strict=False) for group in sources if group in groups]
        if new:
            order = [*new, pl.col(name)] if launched else [pl.col(name), *new]
            updates.append(pl.coalesce(*order).alias(name))
    if layer.key_role is not None:
        updates.append(_key(layer.key_role))
    return updates + clock_updates(groups)


def _message(layer: Layer, groups: set[str]) -> pl.Expr:
    if not layer.is_record:
        return pl.col("text").str.strip_prefix(pl.col("@prefix"))
    if "more" in groups:
        return pl.concat_str("@msg", "@more", separator="\n", ignore_nulls=True)
    return pl.col("@msg") + pl.col("@rest") if "rest" in groups else pl.col("@msg")


def _appended(column: str, value: pl.Expr, separator: str) -> pl.Expr:
    """``column`` with ``value`` behind it, if that is neither null nor what stands there already."""
    old = pl.col(column)
    empty = old == ""
    joined = pl.when(empty).then(value).otherwise(pl.concat_str(old, pl.lit(separator), value))
    if column == "envelope":
        return joined.alias(column)
    return pl.when(value.is_null() | (value == old)).then(old).otherwise(joined).alias(column)


def _key(role: str) -> pl.Expr:
    """The state column that a process key goes to. ``Name rank=1 pid=7, ip=A`` is ``Name pid=7 ip=A``.

    The address stays: pids of containers on two nodes are often equal.
    """
    key = pl.col("@key").str.replace(r" rank=[0-9]+ ", " ").str.replace(", ip=", " ip=", literal=True)
    if role == "container":
        return _appended("container", key, "/")
    if role == "task":
        return pl.coalesce(key, "task").alias("task")
    return pl.when(pl.col("task") == "").then(key.fill_null("")).otherwise("task").alias("task")


def _process() -> pl.Expr:
    container, task = pl.col("container"), pl.col("task")
    return (
        pl.when(task == "")
        .then(container)
        .when((container == "") | (container == task))
        .then(task)
        .otherwise(pl.concat_str(container, task, separator="/"))
    )


def _unescape(text: pl.Series) -> pl.Series:
    """Resolve the escapes of JSON and Go strings; half of a surrogate pair becomes U+FFFD."""
    if not text.str.contains("\\", literal=True).any():
        return text
    escapes = dict(_ESCAPES)
    if text.str.contains(r"\\[ux]").any():
        found = text.str.extract_all(f"{_PAIR}|{_CODE}").explode().drop_nulls().unique().to_list()
        pairs = {pair: _character(pair) for pair in found if len(pair) == 12}
        single = {code for both in found for code in ([both[:6], both[6:]] if len(both) == 12 else [both])}
        escapes = {**pairs, **{code: _character(code) for code in single}, **escapes}
    return text.str.replace_many(list(escapes), list(escapes.values()), leftmost=True)


def _character(escape: str) -> str:
    r"""The character of ``\u0041``, ``\x41`` or a surrogate pair written as two of the first."""
    codes = escape.replace("x", "u").split("\\u")[1:]
    units = b"".join(int(code, 16).to_bytes(2, "little") for code in codes)
    return units.decode("utf-16-le", errors="replace")
