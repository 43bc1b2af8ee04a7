"""Which lines prove that earlier work of the device was sound."""

from __future__ import annotations

import pytest

from analyzer.model import Line
from analyzer.schema import SourceFrame
from analyzer.window.proofs import Proof, find_proofs, prints_read_back_value, statement_templates


def frame(text: str | None) -> SourceFrame:
    return SourceFrame(file="max_steps.py", line=50, function="main", text=text)


def proofs(lines: list[str], statement: str | None = None) -> list[Proof]:
    made = [Line(source=0, number=number, text=text) for number, text in enumerate(lines, start=1)]
    return list(find_proofs(made, statement_templates(frame(statement))))


@pytest.mark.parametrize(
    "text",
    [
        "step 8 logits 64.0000",
        "loss 2.3125",
        "loss=nan",
        "argmax 17",
        "sampled token 42",
        "INFO: step 3 output sum -1.5e-3",
        "logits: [0.12, 0.5]",
        "checksum 12345",
    ],
)
def test_value_that_only_the_device_can_have_computed_is_read_back(text: str) -> None:
    """A copy to the host that returned has waited for all that was launched before it."""
    assert prints_read_back_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "step 2 dispatched",
        "launched 17 kernels, output 3",
        "decode step took 3.2 ms",
        "latency 0.35 s",
        "throughput 123.4",
        "Avg prompt throughput: 12.3 tokens/s, Avg generation throughput: 10.5 tokens/s, Running: 1 reqs",
        "GPU KV cache usage: 5.3%",
        'INFO:     10.0.0.1:54321 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        '10.1.2.3 "GET /health HTTP/1.1" 200 0.003',
        "request 17 finished, output 128 tokens",
        "torch 2.11.0",
        "MAX version 26.7",
        "loaded weights in 12.5 seconds",
        "Memory: 12.5 GiB free",
        "throughput: 1.5e3 tokens/s",
        "23:37:21.197 INFO: heartbeat",
        "Uvicorn running on http://0.0.0.0:8000",
        "max_tokens=4096",
        "num_output_tokens: 128",
        "GPU temperature 65.0 C",
        "",
    ],
)
def test_time_size_rate_request_or_dispatch_proves_nothing(text: str) -> None:
    """A line that the host can print while the device is dead must not clear anybody."""
    assert not prints_read_back_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "SamplingParams(temperature=0.7, top_p=0.95)",
        "temperature: 0.7",
        "gpu_memory_utilization=0.9",
        "timeout=30.0",
        "waiting 1.5 before retry",
        "lr 0.001",
        "CUDA 13.0",
        "driver 580.95",
        "Input tokens: 512",
        "Context: 128 tokens",
        "nan-check is on",
    ],
)
def test_setting_or_version_proves_nothing(text: str) -> None:
    assert not prints_read_back_value(text)


@pytest.mark.parametrize(
    "text",
    ["[OP] LAUNCH argmax [id=7] x=1.5", "INFO::: loss 1.5", ";target=gpu:0", "  loss = 2.5", "\tsum 1.5"],
)
def test_op_log_and_indented_text_prove_nothing(text: str) -> None:
    """Op records, what they print inside, frames and source lines."""
    assert proofs([text]) == []


class TestStatement:
    """The statement that met the fault printed the same line in the steps before."""

    STATEMENT = 'log.info("step %d logits %.4f", step, float(out.to(CPU()).to_numpy().sum()))'

    def test_its_earlier_lines_are_proofs_last_first(self) -> None:
        found = proofs(["step 7 logits 64.0000", "other", "step 8 logits 64.0000"], self.STATEMENT)
        assert [(one.line, one.kind, one.number) for one in found] == [
            (3, "same_statement", 8),
            (1, "same_statement", 7),
        ]

    @pytest.mark.parametrize(
        ("statement", "line"),
        [
            ('print(f"decode {step}: {value:.3f}")', "decode 3: 1.250"),
            ("print('answer is', out.item(), 'ok')", "the answer is 42"),
            ('log.info("%s -> %5.2f done", name, x)', "layer7 ->  1.25 done"),
            (r'print("a \"quoted\" sum", x)', r"a \"quoted\" sum 7"),
        ],
    )
    def test_placeholders_of_all_styles_match_anything(self, statement: str, line: str) -> None:
        assert [one.kind for one in proofs([line], statement)] == ["same_statement"]

    def test_line_without_any_number_proves_nothing(self) -> None:
        """The text alone was known to the host."""
        assert proofs(["step finished, logits follow"], 'print("step finished, logits follow", x)') == []

    def test_short_literals_match_too_much_to_count(self) -> None:
        assert statement_templates(frame('print("%d: %d", a, b)')) == []
        assert statement_templates(frame("out.cpu()")) == []
        assert statement_templates(frame(None)) == []
        assert statement_templates(None) == []

    def test_special_characters_are_literal(self) -> None:
        (pattern,) = statement_templates(frame('print("sum (x+y)*2 = %d", x)'))
        assert pattern.search("sum (x+y)*2 = 8")
        assert not pattern.search("sum xxy2 = 8")
