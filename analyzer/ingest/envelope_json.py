"""Log records as JSON objects with their fields in any order: structlog, zap, zerolog, slog, pino and others.

An object with a level and a message is a record. One without a level stays as it is: it may be the body of
a request. The engine of Polars decodes; the gate keeps all other lines away from it.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analyzer.ingest.envelope_layers import BRACE, DAY, FRAC, TIME, ZONE, Layer

# A key that is not there leaves the next one, in this order.
_LEVEL = "$['level','levelname','severity','lvl','log.level']"
_MESSAGE = "$['message','msg','event']"
_TIME = "$['timestamp','time','ts','asctime','@timestamp']"
_ERROR = ("$['error','err']['message','msg']", "$['error','err']")
_EXCEPTION = (
    "$['error','err']['stack','stack_trace']",
    "$['exc_info','exception','exc_text','stacktrace','stack_trace','stack','error.stack','error.stack_trace']",
)
_STRUCTURED = ("$.exception[0].exc_type", "$.exception[0].exc_value")  # structlog's dict_tracebacks

_PINO = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL")
_NAMES: Final[dict[str, str]] = {
    **{name: name for name in ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "FATAL")},
    **dict.fromkeys(("DBG",), "DEBUG"),
    **dict.fromkeys(("INF", "INFORMATION", "NOTICE"), "INFO"),
    **dict.fromkeys(("WARN", "WRN"), "WARNING"),
    **dict.fromkeys(("ERR",), "ERROR"),
    **dict.fromkeys(("CRIT", "ALERT"), "CRITICAL"),
    **dict.fromkeys(("PANIC", "DPANIC", "EMERGENCY", "FTL"), "FATAL"),
    **dict(zip(("10", "20", "30", "40", "50", "60"), _PINO, strict=True)),
}
_HAS_TEXT = r'"(?:message|msg|event)" ?: ?"'
# Lists and objects as the decoder gives them; `[rank0]: x` is text.
_NO_TEXT = r'^(?:\[(?:[{"\[\]0-9-]|true|false|null)|\{["}]|true$|false$|$)'
_ISO = rf"^{DAY}[T ]{TIME}(?:[.,]{FRAC}[0-9]*)?(?: ?{ZONE})?"
# Seconds, milliseconds, microseconds or nanoseconds since 1970: the first ten digits are the seconds.
_UNIX = r"^[12][0-9]{9}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?$"
# What writers print although it is no JSON: numbers that are none, and half of a surrogate pair.
_NO_NUMBER = r'([^\\]" ?: ?)(?:NaN|-?Infinity)( ?[,}])'
_SURROGATE = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"


def read_records(text: pl.Series) -> pl.DataFrame:
    """The fields of JSON log records, under the names that groups of a pattern have (``Layer``).

    Args:
        text: Lines that look like JSON objects.

    Returns:
        ``msg`` (null = no record), ``more`` (error and exception where the message lacks them), ``level``
        and the clock groups, all str.
    """
    text = _valid(text)
    level = _at(text, _LEVEL).str.to_uppercase().str.extract("^([A-Z]+|[0-9]+)", 1)
    level = level.replace_strict(_NAMES, default=None, return_dtype=pl.String)
    message = _at(text, _MESSAGE).str.strip_suffix("\n")
    is_record = text.str.contains(_HAS_TEXT) & level.is_not_null()
    fields = pl.DataFrame(
        {"msg": _only(message, is_record), "level": level, "error": _error(text)}
    ).with_columns(_exception(text).alias("exception"))
    clock = iso_clock(as_iso(_at(text, _TIME)))
    return fields.select("msg", _more(), "level").hstack(clock)


def _valid(text: pl.Series) -> pl.Series:
    """The text in a form that the decoder takes; what is broken stays and gives nulls."""
    odd = text.str.contains(rf"{_NO_NUMBER}|{_SURROGATE}")
    odd &= _at(_only(text, odd), "$").is_null()
    if not odd.any():
        return text
    mended = text.str.replace_all(_NO_NUMBER, "${1}null${2}").str.replace_all(_SURROGATE, r"\ufffd")
    return mended.zip_with(odd, text)


def _only(text: pl.Series, mask: pl.Series) -> pl.Series:
    """The text where ``mask`` holds, else null: the decoder has nothing to do there."""
    return text.zip_with(mask.fill_null(value=False), pl.Series([None], dtype=pl.String))


def _at(text: pl.Series, path: str) -> pl.Series:
    return text.str.json_path_match(path)


def _first(text: pl.Series, paths: tuple[str, ...]) -> pl.Series:
    """The first of these values that is text, not a list or an object."""
    values = [_at(text, path) for path in paths]
    plain = [_only(value, ~value.str.contains(_NO_TEXT)) for value in values]
    return pl.select(pl.coalesce(plain)).to_series().str.strip_suffix("\n")


def _error(text: pl.Series) -> pl.Series:
    return _first(_only(text, text.str.contains('"err(?:or)?" ?: ?["{]')), _ERROR)


def _exception(text: pl.Series) -> pl.Series:
    mask = text.str.contains(r'"(?:exc|stack|err(?:or)?\.stack)[a-z_]*" ?: ?["\[]|"err(?:or)?" ?: ?\{')
    text = _only(text, mask)
    structured = pl.concat_str(*(_first(text, (path,)) for path in _STRUCTURED), separator=": ")
    return pl.select(pl.coalesce(_first(text, _EXCEPTION), structured)).to_series()


def _more() -> pl.Expr:
    """Error and exception on lines of their own; what is said already is not said again."""
    message, error, exception = pl.col("msg"), pl.col("error"), pl.col("exception")
    said = pl.concat_str(message, exception, separator="\n", ignore_nulls=True)
    new_error = pl.when(~said.str.contains(error, literal=True)).then(error)
    new_exception = pl.when(~message.str.contains(exception, literal=True)).then(exception)
    more = pl.concat_str(new_error, new_exception, separator="\n", ignore_nulls=True)
    return pl.when(more != "").then(more).alias("more")


def iso_clock(time: pl.Series) -> pl.DataFrame:
    """The clock groups of times that are ISO text (``Layer``)."""
    return time.str.extract_groups(_ISO).struct.unnest()


def as_iso(time: pl.Series) -> pl.Series:
    """Times as ISO text, also those that are numbers."""
    number = time.str.contains(_UNIX)
    if not number.any():
        return time
    digits = _only(time, number).str.replace(".", "", literal=True)
    seconds = pl.from_epoch(digits.str.head(10).cast(pl.Int64, strict=False), time_unit="s")
    fraction = digits.str.slice(10, 9).str.pad_end(1, "0")
    written = seconds.dt.strftime("%Y-%m-%dT%H:%M:%S.") + fraction
    return written.zip_with(number.fill_null(value=False), time)


JSON_RECORDS: tuple[Layer, ...] = (
    Layer(
        name="json",
        opens=(BRACE,),
        gate=r'\{.*"(?:level|levelname|severity|lvl|log\.level)" ?: ?["1-6]',
        read=read_records,
    ),
)
