"""What a JSON log record says beside its message: errors, exceptions, and in which layer they are read."""

from __future__ import annotations

import json

import pytest

from tests.ingest.test_envelope import strip_texts

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nRuntimeError: CUDA error: x'
LINES = TRACEBACK.split("\n")


def texts(**fields: object) -> list[str]:
    """The lines that a record gives."""
    return strip_texts(json.dumps(fields))["text"].to_list()


@pytest.mark.parametrize(
    "key", ["exc_info", "exception", "exc_text", "stack", "stacktrace", "stack_trace", "error.stack"]
)
def test_exception_stands_below_its_message(key: str) -> None:
    """Whatever the key is called and wherever it stands."""
    assert texts(level="error", msg="died", **{key: TRACEBACK}) == ["died", *LINES]
    assert texts(**{key: TRACEBACK}, time="2026-11-29T10:00:00Z", message="died", level="ERROR") == [
        "died",
        *LINES,
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"levelname": "ERROR", "message": "died", "exception": TRACEBACK},
        {"levelname": "ERROR", "exc_info": TRACEBACK, "message": "died"},
        {"timestamp": "2026-11-29T10:00:00Z", "level": "ERROR", "message": "died", "exc_info": TRACEBACK},
    ],
)
def test_record_that_begins_like_one_of_max_or_tgi_loses_nothing(fields: dict[str, object]) -> None:
    """Those two layers know the order of their own program only."""
    assert texts(**fields) == ["died", *LINES]


def test_error_stands_between_message_and_stack() -> None:
    """Zap prints the cause beside the message, and Go frames."""
    record = {"level": "error", "msg": "failed", "error": "CUDA error: x", "stacktrace": "main.f\n\t/a.go:7"}
    assert texts(**record) == ["failed", "CUDA error: x", "main.f", "\t/a.go:7"]


def test_error_object_gives_its_message_and_stack() -> None:
    """Pino serialises an error; what its stack repeats is said once."""
    error = {
        "type": "Error",
        "message": "CUDA error: x",
        "stack": "Error: CUDA error: x\n    at f (a.js:1:2)",
    }
    assert texts(level=50, err=error, msg="failed") == [
        "failed",
        "Error: CUDA error: x",
        "    at f (a.js:1:2)",
    ]


def test_what_the_message_says_is_not_said_again() -> None:
    """Else one error would be counted twice."""
    assert texts(level="error", msg="boom: CUDA error: x", error="CUDA error: x") == ["boom: CUDA error: x"]
    assert texts(level="error", message=TRACEBACK, exception=TRACEBACK) == LINES


def test_tag_at_the_start_of_an_error_is_no_list() -> None:
    """A list is no text; a tag in brackets is."""
    assert texts(level="error", msg="failed", error="[rank1]: CUDA error: x") == ["failed", "CUDA error: x"]
    assert texts(level="error", msg="failed", error=["a", "b"], stack=[]) == ["failed"]


def test_structured_exception_gives_its_last_line() -> None:
    """Structlog's ``dict_tracebacks``: the first of the chain is the exception that was raised."""
    exception = [
        {"exc_type": "RuntimeError", "exc_value": "CUDA error: x", "frames": [{"filename": "a.py"}]},
        {"exc_type": "KeyError", "exc_value": "'a'", "frames": []},
    ]
    assert texts(level="error", event="died", exception=exception) == ["died", "RuntimeError: CUDA error: x"]


def test_flags_are_no_exceptions() -> None:
    """``exc_info`` that no formatter replaced, and an empty one."""
    assert texts(level="error", event="died", exc_info=True, exception="", error=None) == ["died"]


def test_records_and_bodies_of_requests_are_told_apart_in_one_log() -> None:
    """Each line by itself, in the order given, and each with its own facts."""
    body = '{"model": "a", "messages": [{"role": "user", "content": "what is level?"}]}'
    lines = [
        '{"level":"info","msg":"a"}',
        body,
        '{"level":"error","msg":"b","ts":1771114494,"exception":"c\\nd"}',
        '{"level":"info","msg":"e","error":"f"}',
    ]
    rows = strip_texts(*lines)
    assert rows["text"].to_list() == ["a", body, "b", "c", "d", "e", "f"]
    assert rows["line"].to_list() == [1, 2, 3, 3, 3, 4, 4]
    assert rows["time_ns"].is_not_null().to_list() == [False, False, True, True, True, False, False]
