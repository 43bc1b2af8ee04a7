"""Requests and settings that quote errors are no errors of the process that logs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.speech.quoted_values import without_quoted

SGLANG = "[2026-05-26 07:48:17 TP0] "
STAMP = "INFO 11-21 10:22:36 [logger.py:42] "
IMA = "CUDA error: an illegal memory access was encountered"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def result(folder: Path, *lines: str) -> Result:
    path = folder / "input.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path)])


@pytest.mark.parametrize(
    "line",
    [
        f"{STAMP}Received request c1: prompt: 'Explain: {OOM}', params: SamplingParams(n=1)",
        (
            rf"{STAMP}Received request c2: prompt: 'it\'s\nSegmentation fault (core dumped)\nWatchdog caught "
            r"collective operation timeout: WorkNCCL(SeqNum=1)', params: SamplingParams(n=1)"
        ),
        f"{STAMP}args: Namespace(on_error='retry on {IMA}')",
        f"{STAMP}non-default args: {{'note': '{IMA}'}}",
        f"DEBUG:server:{{'prompt': \"{IMA}\"}}",
        f"INFO:server:chat(messages=[{{'role': 'user', 'content': '{OOM}'}}])",
        f"INFO:server:run(input='{IMA} and then it is cut",
        f"prompts: 100%|#| 3/3 [00:27<00:00, 1.09it/s]{STAMP}prompt: '{OOM}'",
        f"{SGLANG}Receive: obj=GenerateReqInput(rid='1', text='why {IMA} ?', input_ids=None)",
        f"{SGLANG}Receive OpenAI: obj={{'model': 'm', 'messages': [{{'content': \"it's {OOM}\"}}]}}",
        f"{SGLANG}Finish: obj=GenerateReqInput(text='a'), out={{'text': ' RuntimeError: {IMA}', 'n': 1}}",
        f"[2026-05-26 07:48:17] [TokenizerManager] Receive: obj=GenerateReqInput(text='{OOM}')",
        f"{SGLANG}prompt: {IMA}",
        f"Prompt: 'what is {IMA}?', Generated text: ' {OOM}'",
        (
            '{"timestamp":"2026-01-08T12:00:00.123456Z","level":"INFO","fields":{"message":'
            '"request prompt=\\"why?\\nRuntimeError: CUDA error: device-side assert triggered\\n\\""}}'
        ),
        f"{STAMP}response: 'RuntimeError: {IMA} means that'",
        f"{STAMP}documentation='When {IMA} is shown, restart'",
        f"DEBUG:server:answer: {IMA} comes from a bad index",
        f'{{"role": "user", "content": "{IMA}"}}',
        f"{{'role': 'assistant', 'content': 'it is RuntimeError: {IMA}'}}",
        f'{{"messages": [{{"role": "user", "content": [{{"type": "text", "text": "{OOM}"}}]}}]}}',
        f'{{"id": "c", "choices": [{{"index": 0, "message": {{"role": "assistant", "content": "{OOM}"}}}}]}}',
        f'data: {{"choices": [{{"delta": {{"content": "{IMA}"}}}}]}}',
        f'{{"prompt": "explain {IMA}", "max_tokens": 20}}',
        f'POST /v1/chat body="{{\\"role\\":\\"user\\",\\"content\\":\\"{IMA}\\"}}"',
    ],
)
def test_quoted_error_is_ignored(tmp_path: Path, line: str) -> None:
    found = result(tmp_path, line)
    assert not found.faults
    assert (found.accounting.ignored, found.accounting.unrecognised) == (1, 0)


@pytest.mark.parametrize(
    "line",
    [
        f"{STAMP}RuntimeError: {IMA}",
        f"{STAMP}RuntimeError: {IMA} while prompt: 'hello' ran",
        f"{STAMP}prompt: 'hello' can't be answered: RuntimeError: {IMA}",
        f"ERROR 11-21 10:22:36 [logger.py:42] prompt: 'hello' RuntimeError: {IMA}",
        f"prompts: 100%|#| 3/3 [00:27<00:00, 1.09it/s]ERROR 11-21 10:22:36 [x.py:4] RuntimeError: {IMA}",
        f"{STAMP}prompt: 'hello'\rRuntimeError: {IMA}",
        f"{SGLANG}Receive: obj=GenerateReqInput(text='hello') failed: RuntimeError: {IMA}",
        f"{SGLANG}Scheduler got text='hello' RuntimeError: {IMA}",
        f"Scheduler prompt='RuntimeError: {IMA}'",
        f'{{"role": "user", "content": "hello"}} RuntimeError: {IMA}',
        f'ERROR:server:{{"messages": [{{"role": "user", "content": "hi"}}], "error": "{IMA}"}}',
    ],
)
def test_error_outside_the_quotes_is_kept(tmp_path: Path, line: str) -> None:
    (fault,) = result(tmp_path, line).faults
    assert (fault.kind, fault.code, fault.sticky) == ("illegal_address", 700, True)


def test_only_what_stands_behind_a_key_is_taken_out() -> None:
    assert without_quoted("name='a' prompt='b\\'c' d \"e\"") == "name='a' prompt='' d ''"
    assert without_quoted("said 'x'") == "said 'x'"
