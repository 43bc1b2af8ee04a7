"""Lines in which a program says that something failed, whoever prints them: error-like or not, decided here.

A macro (``CUDA error (flash.h:188): ...``), a level of a logger, the name of an exception, the print of a
return code, a compiler's diagnostic. What quotes, explains, denies or warns is none.
"""

from __future__ import annotations

import re

from analyzer.speech.explained import goes_on as sentence_goes_on
from analyzer.speech.mentions import is_code, is_mention

_QUIET = frozenset({"INFO", "DEBUG", "TRACE", "WARNING"})
_LOUD = frozenset({"ERROR", "CRITICAL", "FATAL"})
# A level that a program writes by itself, without a logger that an envelope knows.
_CALM_WORD = re.compile(
    r"(?i)^\W*(?:warn(?:ing)?|info|debug|notice|note|hint|tip|trace|verbose)\b(?!ings? treated as)"
)
_CALM_INSIDE = re.compile(
    r"(?<![\w-])(?:WARN(?:ING)?|INFO|DEBUG|NOTICE|[Ww]arning)(?:\]|:|\)| -)"
    r"|\blevel=\"?(?i:warn|info|debug)|^[WID][0-9]{4} "
)
_FAILURES = (
    *("errors?", "err", "fatal", "panic(?:ked)?", "fail(?:ed|ure|s)?", "failures?", "exception"),
    *("abort(?:ed|ing)?", "cannot", "can't", "could ?n[o']t", "unable to", "assertion", "unrecoverable"),
    *("terminat(?:e called|ing due to)", "corrupt(?:ed|ion)?", "crash(?:ed)?", "invalid pointer"),
    *("unhandled", "uncaught", "bad_alloc", "undefined symbol", "not supported", "no such file"),
    *("unsupported", "incompatible", "mismatch", "denied", "refused", "illegal", "violation"),
    *("insufficient", "out of memory", "overflow", "double free", r"unaligned \w+ chunk"),
)
_FAILS = re.compile(rf"(?i)(?<![\w/.-])(?:{'|'.join(_FAILURES)})(?![\w/-]|\.\w)")
_NAMED = re.compile(
    r"\b(?:[a-z_]\w*(?:\.|::)){0,8}[A-Z]\w*(?:Error|Exception|Fault|Failure)\b"
)  # RuntimeError
_CHECK = re.compile(r"\b[A-Z_]*(?:CHECK|CALL|SAFE)[A-Z_]*\b|\b[Cc]heck failed\b")
_RETURNED = re.compile(
    r"(?i)\b(?:code|ret(?:urn(?:ed|s)?)?|rc|status|result|res|err(?:or|no)?|e)\w{0,8} ?(?:[=:(\[<]|is\b)"
)
_PLACE = re.compile(r"^[^\s:]+\.\w{1,5}(?::[0-9]+)+:? ?$|^\W*$")  # nothing but a file and a line before it
# Said of errors that are not there, are over, or are only counted.
_DENIALS = (
    r"(?:no|without|zero|0|any|not an?) (?:[\w-]+ ){0,2}(?:errors?|fail\w*|exceptions?|crash\w*|faults?)",
    *(r"ignor\w+", r"suppress\w*", "recovered", "resolved"),
    *("handl(?:ed|er|ing)", "expect(?:ed|s)?", r"simulat\w+", r"inject\w+", r"mock\w*", "caught"),
    *(r"tolerat\w+", "retr(?:y|ies|ying|ied)", "fall(?:s|ing)? ?back", "fell back", r"skip\w*"),
    *("harmless", "benign", "safe to ignore", "non-fatal", "nonfatal", "if", "when", "may", "might"),
    *("would", "could(?! ?n[o']t)"),
)
_COUNTERS = (
    *("rate", "count", "budget", "counter", "handler", "handling", "log", "threshold", "injection", "page"),
    *(
        "message",
        "messages",
        "report",
        "reporting",
        "code",
        "correction",
        "bars?",
        "policy",
        "tolerance",
        "norm",
    ),
)
_DENIED = re.compile(
    rf"(?i)\b(?:{'|'.join(_DENIALS)})\b"
    rf"|\b(?:error|fail(?:ed|ure)?)s?[ _](?:{'|'.join(_COUNTERS)})\b"
    r"|\b(?:errors?|fail(?:ed|ures?)?|fatal|killed) ?[=:] ?0\b|\b0 (?:errors?|fail(?:ed|ures?))\b"
    r"|\bon[-_](?:error|failure)\b|--?\w+[-_](?:error|fail)"
)
# Somebody else ended, or is told to end: what of stands elsewhere.
_SOMEBODY = (
    *("worker", "process", "engine", "server", "child", "scheduler", "rank", "job", "task", "container"),
    *("core", "proc", "pod", "service", "actor", "runner"),
)
_HANDS_ON = re.compile(
    rf"(?i)\b(?:{'|'.join(_SOMEBODY)})\w*\b.{{0,60}}"
    r"\b(?:died|dead|dies|killed|exit\w*|terminated|crashed|failed|failure|stopped|shut\w*)\b"
    r"|\broot cause\b|\bsee (?:above|the)\b|\bshutting down\b|\bsignal\b.{0,20}\breceived\b"
    r"|\bapplication startup failed|\blost (?:worker|connection|peer|rank)"
)
# A line of a traceback or of native frames: what was raised stands below or above it.
_FRAME = re.compile(
    r"^\s*(?:raise|throw|assert|return|File \"|at [\w.<$]+\(|#[0-9]+ |frame #|from /)\b|^\s*[\^~]+$"
    r"|(?i:stack ?trace|backtrace)"
)
# What stands right before the sentence of a runtime: ``CUDA driver error: ``.
_OF_RUNTIME = re.compile(
    r"(?i)\b(?:cuda|hip|rocm|nccl|rccl)[ _]?(?:driver |runtime )?(?:error|failure)[ :]*$"
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_WORDS = 3  # ``Reason: Error`` says nothing
# What a program still says while it ends.
_FAREWELL = re.compile(
    r"(?i)\bshut(?:ting|s)? ?down\b|\bexit(?:ing|s|ed)?\b|\bfinished server\b|\bstopp(?:ing|ed)\b"
    r"|\bclean(?:ing)? ?up\b|\bterminat|\babort|\bcore dump|\bdestroy|\btear"
)
_METRICS = re.compile(r"(?i)\b(?:loss|acc(?:uracy)?|step|epoch|rmse|mae|mse|wer|cer|ppl)\b ?[=:]? ?[0-9]")


def says_failure(text: str, level: str | None) -> bool:
    """Whether a line of a program says that something failed, in its own words."""
    text = text.strip()
    if (
        len(_WORD.findall(text)) < _WORDS
        or _FRAME.search(text)
        or is_calm(text, level)
        or is_code(text)
        or _METRICS.search(text)
    ):
        return False
    if _DENIED.search(text) is not None or _HANDS_ON.search(text) is not None:
        return False
    found = _FAILS.search(text) or _NAMED.search(text)
    if found is None:
        return level in _LOUD
    return not is_mention(text[: found.start()], level)


def goes_on(text: str, level: str | None) -> bool:
    """Whether a program that wrote this was still at work: a logger's line that tells of no end."""
    return is_calm(text, level) and _FAREWELL.search(text) is None


def reports(before: str, level: str | None, after: str = "") -> bool:
    """Whether a line reports the error that is told behind ``before``.

    Args:
        before: The line up to the error's own name or sentence.
        after: The rest of the line behind it.
        level: As its logger wrote it; null = it writes none.
    """
    if is_calm(before, level) or is_code(before) or is_mention(before, level) or _DENIED.search(before):
        return False
    head = _OF_RUNTIME.sub("", before)
    talks = is_mention(head, level) or (_WORD.search(head) is not None and sentence_goes_on(head, after))
    if level not in _LOUD and talks:
        return False
    if level in _LOUD or _PLACE.search(before):
        return True
    return any(form.search(before) for form in (_FAILS, _NAMED, _CHECK, _RETURNED))


def is_calm(text: str, level: str | None) -> bool:
    """Whether a logger, or the line itself, says that it is no louder than a warning."""
    return level in _QUIET or bool(_CALM_WORD.search(text) or _CALM_INSIDE.search(text))
