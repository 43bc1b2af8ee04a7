"""What comes off a line, what it says, and what must stay (formats.md 6 and 7)."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer.ingest.envelope import LAYERS, LINES_SCHEMA, strip
from tests.ingest.envelope_carrier_cases import CARRIERS
from tests.ingest.envelope_clocks import NOV_18, Case, epoch, no_year
from tests.ingest.envelope_logger_cases import LOGGERS
from tests.ingest.envelope_stamp_cases import STAMPED, UNSTAMPED
from tests.ingest.envelope_store_cases import PLAIN, STORES


def strip_texts(*raw: str) -> pl.DataFrame:
    schema = {"source": pl.UInt16, "line": pl.UInt32, "raw": pl.String}
    return strip(pl.DataFrame({"source": 0, "line": range(1, len(raw) + 1), "raw": raw}, schema=schema))


def strip_one(raw: str) -> dict[str, Any]:
    """The only row of a line, without what is null or empty."""
    row = strip_texts(raw).row(0, named=True)
    assert row.pop("raw") == raw
    return {
        name: value
        for name, value in row.items()
        if value not in {None, ""} and name not in {"source", "line"}
    }


# Three and four layers on one line.
STACKS: list[Case] = [
    (
        "2026-07-25T07:53:08.2174870Z stderr F \x1b[36m(Core pid=64)\x1b[0m ERROR 11-21 10:22:33 [a:9]  hi",
        " hi",
        "cri+tag+vllm",
        {
            "stream": "stderr",
            "process": "Core pid=64",
            "pid": 64,
            "level": "ERROR",
            **epoch("2026-07-25T07:53:08", 217_487_000),
        },
    ),
    (
        (
            r'{"log":"\u001b[36m(W pid=9)\u001b[0m [rank1]:[E1103 01:02:03.000000001 P.cpp:1] x\n",'
            '"stream":"stderr","time":"2026-01-01T00:00:00Z"}'
        ),
        "x",
        "docker_json+tag+rank+c10",
        {
            "stream": "stderr",
            "process": "W pid=9",
            "pid": 9,
            "rank": 1,
            "level": "ERROR",
            **epoch("2026-01-01T00:00:00"),
        },
    ),
    (
        "vllm-1  | Nov 18 17:26:39 node7 serve[5]: (EngineCore pid=64) E0101 12:00:00.000001 99 f.cc:1] x",
        "x",
        "compose+syslog+tag+glog",
        {
            "process": "vllm-1/serve[5]/EngineCore pid=64",
            "pid": 64,
            "level": "ERROR",
            **no_year(NOV_18, "17:26:39"),
        },
    ),
    (
        "Nov 18 17:26:39 node7 kernel: [  503.025123] NVRM: Xid",
        "NVRM: Xid",
        "syslog+dmesg",
        {"process": "kernel", **no_year(NOV_18, "17:26:39")},
    ),
    (
        "svc-2 | 16:05:54.656 INFO: 2026-01-01 10:00:00,123 - a - ERROR - x",
        "x",
        "compose+max+python",
        {"process": "svc-2", "level": "ERROR", **epoch("2026-01-01T10:00:00", 123_000_000)},
    ),
]

CASES = [*CARRIERS, *STORES, *LOGGERS, *STAMPED, *STACKS]

# Text that a witness reads, and text that no logger printed.
NEVER = [
    "[OP] LAUNCH Epilogue(matmul, silu, operandIndices=[0]) [id=1] ",
    "========= Invalid __global__ read of size 4 bytes",
    "=========     at k+0x100 in a.py:96",
    "[  before_launch - k - arg9_1  ]:",
    "[ after_launch: k ]",
    "[GEX-3703] something",
    "frame #3: c10::Error::Error() + 0x6c (0x7f1 in /lib/libc10.so)",
    '  File "a.py", line 3, in f',
    "    raise ValueError(x)",
    "At max/a.mojo:163:17: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (x)",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "ValueError: x",
    "srv/app/max_cases.py:57:<module>",
    "INFO::: MxNxK: 64x64x64",
    "DEBUG::: mgp.buffer.plan stats:",
    "node1:123:456 [0] NCCL INFO Bootstrap",
    "node1:123:456 [3] misc/strongstream.cc:343 NCCL WARN Cuda failure",
    "[fused from 4 ops];target=gpu:0",
    ";target=gpu:0",
    "[ 0.1234] ",
    "[ 0.123456, 0.5]",
    "[0] a",
    "[1784] line number of a viewer",
    "name  | a table",
    "2026-05-07 | a table",
    "(raised from CUDART_CB)",
    "ERROR: one space",
    "array[0m] = 1",
    "[36m nothing known behind it",
    ":3:rocvirtual.cpp           :3598: 7537580273765 us: [pid:1 tid: 0x7f]",
    "",
    "   ",
    *UNSTAMPED,
    *PLAIN,
]


@pytest.mark.parametrize(("raw", "text", "envelope", "known"), CASES)
def test_layers_come_off_and_say_what_they_know(
    raw: str, text: str, envelope: str, known: dict[str, Any]
) -> None:
    """Each layer gives exactly its facts; all other columns are null or empty."""
    expected = {"text": text, "envelope": envelope, **known}
    assert strip_one(raw) == {name: value for name, value in expected.items() if value != ""}


def test_every_layer_has_two_samples() -> None:
    """A layer without samples rots: each name stands in the envelope of two cases or more."""
    shown = [name for case in CASES for name in case[2].split("+")]
    single = {"max_file", "tgi_json", "tensorrt_llm", "coredump_clock", "crashpad", "loguru"}
    assert {layer.name for layer in LAYERS} == set(shown)
    assert {name for name in shown if shown.count(name) < 2} <= single


@pytest.mark.parametrize("raw", NEVER)
def test_payloads_that_look_like_envelopes_stay(raw: str) -> None:
    """Text that a witness reads, and text that no logger printed, is not touched."""
    assert strip_texts(raw).select("text", "envelope", "process").row(0) == (raw, "", "")


@pytest.mark.parametrize("raw", NEVER)
def test_payloads_stay_behind_an_envelope_too(raw: str) -> None:
    """Taking one layer off must not make the payload a layer."""
    row = strip_one(f"2026-07-25T07:53:08.217487089Z stderr F [rank3]: {raw}")
    assert (row.get("text", ""), row["envelope"], row["process"]) == (raw, "cri+rank", "rank3")


def test_columns_are_those_of_lines() -> None:
    """Names, order and types hold for raw lines, enveloped lines and no lines."""
    for raw in (("plain",), ("[rank0]: x",), ("plain", "[rank0]: x"), ()):
        assert strip_texts(*raw).schema == pl.Schema(LINES_SCHEMA)


def test_order_of_lines_is_kept() -> None:
    """Touched and untouched lines come back in the order given, with their source and number."""
    raw = ["b", "[rank1]: a", "c", "x\ry", "\x1b[1mbold", "16:05:54.656 INFO: m"]
    frame = pl.DataFrame(
        {"source": [3, 1, 3, 2, 0, 3], "line": [60, 50, 40, 30, 20, 10], "raw": raw},
        schema={"source": pl.UInt16, "line": pl.UInt32, "raw": pl.String},
    )
    assert strip(frame).select("source", "line", "text").rows() == [
        (3, 60, "b"),
        (1, 50, "a"),
        (3, 40, "c"),
        (2, 30, "x"),
        (2, 30, "y"),
        (0, 20, "bold"),
        (3, 10, "m"),
    ]


def test_progress_bar_gives_a_row_for_each_state() -> None:
    """A line is cut at inner carriage returns; blank states go, what the prefix said holds for all."""
    raw = "2026-07-25T07:53:08.217487089Z stderr F (W pid=5) a:  1%\r\r  \ra:  2%"
    raw += "\r(W pid=5) ERROR 11-21 10:22:33 [a.py:1]   died\r"
    rows = strip_texts("before", raw)
    assert rows.select("line", "text", "stream", "process").rows() == [
        (1, "before", None, ""),
        (2, "a:  1%", "stderr", "W pid=5"),
        (2, "a:  2%", "stderr", "W pid=5"),
        (2, "  died", "stderr", "W pid=5"),
    ]
    assert rows["raw"].to_list() == ["before", raw, raw, raw]


def test_line_of_carriage_returns_is_one_empty_row() -> None:
    """Every line keeps at least one row, so that numbers have no holes."""
    assert strip_texts("\r\r", "\r", "").select("line", "text").rows() == [(1, ""), (2, ""), (3, "")]


@pytest.mark.parametrize(
    ("glued", "text"),
    [
        ("30/30 [00:27<00:00, 1.09it/s](VllmWorker rank=0 pid=9923) ERROR 11-21 10:22:33 [a.py:1] x", "x"),
        ("output: 12.39 toks/s]2026-12-04 23:53:55,494 - app - ERROR - y", "y"),
    ],
)
def test_record_glued_to_a_progress_bar_is_cut_off(glued: str, text: str) -> None:
    """A bar has no line end of its own (formats.md 7.1)."""
    rows = strip_texts(glued)
    assert rows["line"].to_list() == [1, 1]
    assert rows["text"][0].endswith("/s]")
    assert rows.select("text", "level").row(1) == (text, "ERROR")


@pytest.mark.parametrize(
    "death",
    [
        "Killed",
        "Segmentation fault (core dumped)",
        "Aborted",
        "run.sh: line 12:   231 Killed                  python serve.py",
    ],
)
def test_the_word_of_a_shell_behind_a_progress_bar_is_cut_off(death: str) -> None:
    """The process dies before it ends its line."""
    bar = "Loading checkpoint shards:  50%|#####     | 4/8 [00:20<00:20,  5.1s/it]"
    rows = strip_texts(f"{bar}{death}")
    assert rows.select("line", "text").rows() == [(1, bar), (1, death)]


@pytest.mark.parametrize("behind", ["loaded", "Killed 3 stale workers", "Aborted request cmpl-1", "Killedx"])
def test_progress_bar_with_plain_text_behind_it_stays_whole(behind: str) -> None:
    """Only a known prefix, and what a shell says of a death, cuts."""
    text = f"1/2 [00:27<00:00, 1.09it/s]{behind}"
    assert strip_texts(text)["text"].to_list() == [text]


def test_traceback_inside_json_gives_its_lines() -> None:
    """Line ends inside a JSON string are lines, blank ones too; an exception goes below its message."""
    raw = json.dumps({"levelname": "ERROR", "message": "a\n\n  b", "exc_info": "Traceback:\n  File x\n"})
    rows = strip_texts(raw)
    assert rows["text"].to_list() == ["a", "", "  b", "Traceback:", "  File x"]
    assert rows["level"].unique().to_list() == ["ERROR"]


def test_terminal_sequences_and_nul_go() -> None:
    """CSI, OSC, APC, a sequence that was cut off, and NUL bytes are no text."""
    raw = "\x00a\x1b[38;5;1mb\x1b]0;title\x07c\x1b_x\x1b\\d\x1b(Be\x1b[?25lf\x00\x1b[0;0m\x1b[3"
    assert strip_texts(raw)["text"].to_list() == ["abcdef"]


def test_colour_code_without_escape_goes_at_the_end_of_a_line() -> None:
    """What closes a line is no text (formats.md 7.5); inside a line it may be."""
    assert strip_texts("red[0m", "a[1m b")["text"].to_list() == ["red", "a[1m b"]


def test_prefix_of_a_very_long_line_comes_off() -> None:
    """Captures look at the head of the text only; what follows stays whole."""
    payload = "  " + "x" * 100_000
    texts = strip_texts(f"[rank0]: {payload}", f"16:05:54.656 INFO: {payload}", "[rank0]:")["text"].to_list()
    assert texts == [payload, payload, ""]


def test_broken_json_stays_as_it_is() -> None:
    """A record that was cut is a line like any other."""
    raw = '{"log":"half a rec'
    assert strip_texts(raw).select("text", "envelope").row(0) == (raw, "")


def test_lone_surrogates_become_replacement_characters() -> None:
    """Docker writes what it read; half of a pair is no character."""
    raw = r'{"log":"a\ud83d b \ude00\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}'
    assert strip_one(raw)["text"] == "a\ufffd b \ufffd"


def test_full_date_inside_beats_a_clock_without_one_outside() -> None:
    """The outermost full date wins; without any, the first clock found."""
    both = strip_texts(
        "[2026-05-26 07:48:17] 2026-01-01 10:00:00,000 - a - INFO - x",
        "16:05:54.000 INFO: Nov 18 17:26:39 h u[1]: x",
    )
    assert both["clock"].to_list() == ["epoch", "no_date"]
    assert both["time_ns"][0] == epoch("2026-05-26T07:48:17")["time_ns"]


def test_rank_tag_does_not_change_the_key_of_a_tagged_process() -> None:
    """Exception hooks print ``[rankN]`` on some lines only: the key must be the same on all of them."""
    rows = strip_texts(
        "(Worker_TP1 pid=9) x", "(Worker_TP1 pid=9) [rank1]: x", "(Worker_TP1 pid=9) [rank1]:[E a.cpp:1] x"
    )
    assert rows["process"].unique().to_list() == ["Worker_TP1 pid=9"]


def test_layers_beyond_the_limit_stay() -> None:
    """Eight rounds end a line that would go on for ever; nothing is lost."""
    row = strip_one("[rank0]:" * 12 + "x")
    assert row["text"] == "[rank0]:" * 4 + "x"


ODD = st.one_of(
    st.text(),
    st.text('\r\n\x00\x1b[]()0123456789:;m{}"\\ TZ-.,|IEWF', max_size=40),
    st.builds(
        lambda case, cut, tail: case[0][: cut % (len(case[0]) + 1)] + tail,
        st.sampled_from(CASES),
        st.integers(0, 200),
        st.text(max_size=8),
    ),
)


@given(st.lists(ODD, max_size=12))
def test_any_text_survives(raw: list[str]) -> None:
    """No text raises, no line is lost, raw text is kept, and what passed plain stays plain."""
    rows = strip_texts(*raw)
    assert rows.schema == pl.Schema(LINES_SCHEMA)
    assert rows["line"].unique().sort().to_list() == list(range(1, len(raw) + 1))
    assert rows["line"].is_sorted()
    assert rows["raw"].to_list() == [raw[line - 1] for line in rows["line"]]
    assert not rows.select("text", "process", "envelope").null_count().sum_horizontal().item()


PAYLOAD = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs", "Cc"])),
    st.sampled_from([text for text in NEVER if text]),
    st.text(" \tabc[]():0123456789", max_size=20),
)


@given(PAYLOAD)
def test_plain_payload_comes_back_from_any_wrapping(payload: str) -> None:
    """Envelope on, envelope off: the same text, with its indentation."""
    plain = strip_texts(payload)
    assume(plain["envelope"].to_list() == [""] and plain["text"].to_list() == [payload])
    log = json.dumps(
        {"log": payload + "\n", "stream": "stderr", "time": "2026-01-01T00:00:00.1Z"}, separators=(",", ":")
    )
    rows = strip_texts(
        f"2026-07-25T07:53:08.217487089Z stdout F {payload}",
        f"\x1b[31m[rank3]: \x1b[0m{payload}\x1b[0m\r",
        log,
    )
    assert rows["text"].to_list() == [payload] * 3
    assert rows["envelope"].to_list() == ["cri", "rank", "docker_json"]
