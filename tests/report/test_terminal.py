"""The terminal report: content, order, width, and harmlessness."""

from __future__ import annotations

import msgspec
import pytest
from rich.cells import cell_len
from rich.text import Text

from analyzer import schema
from analyzer.report import terminal
from analyzer.report.plain import plain
from analyzer.schema import Result
from tests.report import results

ESC = "\x1b"
WIDTHS = (60, 80, 200)
every_result = pytest.mark.parametrize("name", results.ALL)
every_width = pytest.mark.parametrize("width", WIDTHS)


def flat(result: Result, width: int = 80, top: int = 3) -> str:
    """The report with its wrapping undone."""
    return " ".join(terminal.render(result, width=width, color=False, top=top).split())


def test_verdict_with_its_confidence_comes_first() -> None:
    first = terminal.render(results.late(), width=200).splitlines()[0]
    assert first == "LIKELY: custom__paged_lookup (id 302) in step 9 most likely accessed a bad address."


@every_width
def test_sections_come_in_the_order_of_need(width: int) -> None:
    text = terminal.render(results.late(), width=width)
    heads = ["LIKELY", "What failed", "reported at", "Suspects", "Cleared", "Run next", "6927 lines"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_late_report_is_not_to_be_believed_and_says_why() -> None:
    text = flat(results.late())
    assert "illegal_address · CUDA 700 CUDA_ERROR_ILLEGAL_ADDRESS · gpu:0 · line 6926" in text
    assert "reported at: /srv/app/max_steps.py:50 in main" in text
    assert "do not believe it: the fault is older than its report (met by a copy to the host" in text
    assert "1 report caused by this one" in text


def test_exact_report_is_to_be_believed() -> None:
    text = flat(results.proven())
    assert text.startswith("PROVEN: custom__strided_gather failed.")
    assert "kernel __custom__strided_gather · op id 8 · line 136 · badops.mojo:29:50" in text
    assert "believe it (device-sync-mode was on)" in text
    assert "do not believe" not in text


@every_width
def test_suspect_shows_identity_share_and_the_line_that_made_it(width: int) -> None:
    text = flat(results.late(), width)
    assert "1. custom__paged_lookup · 71% id 302 · step 9 · gpu:0 · line 6548" in text
    assert 'srv/app/max_steps.py:30 in build x = ops.custom(name="paged_lookup")' in text
    assert "<1%" in text


def test_reasons_are_folded_to_the_strongest_three_with_their_lines() -> None:
    text = flat(results.late())
    assert "+ custom kernel: can address anything (line 6548)" in text
    assert "+ takes an index tensor (lines 6548, 6554, 6560, ...)" in text
    assert "- runs once a step without harm (line 270)" in text
    assert "weakest" not in text
    assert "1 weaker reason not shown" in text


def test_reason_without_weight_is_neutral_and_a_line_is_cited_once() -> None:
    reason = schema.Reason(evidence="nan", text="counted by the check (line 665)", weight=0.0, lines=[665])
    text = flat(results.result(suspects=[msgspec.structs.replace(results.paged_suspect(), reasons=[reason])]))
    assert text.count("= counted by the check (line 665)") == text.count("665") == 1


def test_long_error_keeps_its_begin_and_its_end() -> None:
    text = flat(
        results.result(faults=[results.fault(text="failed calling " + "x" * 1000 + " with error 'E'")]), 200
    )
    assert "failed calling xxx" in text
    assert "xxx with error 'E'" in text
    assert "x" * 200 not in text


def test_an_error_that_the_verdict_quotes_is_cut_to_one_line_below() -> None:
    text = "CUDA out of memory. " + "Tried to allocate. " * 20 + "The end."
    full = results.result(faults=[results.fault(text=text)])
    told = msgspec.structs.replace(full.conclusion, statement=f"Out of memory: {text}")
    shown = terminal.render(msgspec.structs.replace(full, conclusion=told), width=80)
    assert shown.count("The end.") == 1
    assert flat(full).count("The end.") == 1


def test_consequences_and_others_are_named_with_kind_and_line() -> None:
    after = [results.fault(role="cascade", kind="peer_lost", line=line, count=2) for line in range(20, 25)]
    beside = results.fault(role="bystander", kind="hang_timeout", line=9)
    text = flat(results.result(faults=[results.fault(), *after, beside]))
    named = ", ".join(f"peer_lost at line {line} (2 times)" for line in (20, 21, 22))
    assert f"10 reports caused by this one: {named} and 4 more" in text
    assert "1 report of others: hang_timeout at line 9" in text


def test_a_long_list_in_a_note_is_cut() -> None:
    clean = results.clean()
    told = [msgspec.structs.replace(clean.inputs[0], notes=["tried: a, b, c, d, e, f, g"])]
    assert "tried: a, b, c, d, e and 2 more" in flat(msgspec.structs.replace(clean, inputs=told))


def test_top_limits_the_suspects_and_counts_the_rest() -> None:
    assert "2. Prologue" in flat(results.late(), top=2)
    text = flat(results.late(), top=1)
    assert "2. Prologue" not in text
    assert "and 1 more, <1% together" in text


def test_window_says_where_it_begins_and_whether_that_is_proven() -> None:
    late = results.late()
    assert late.window is not None
    text = flat(late)
    assert "ids 288 to 319 · step 9 · gpu:0" in text
    assert "begins: step 8 was copied to the host and printed · line 6229" in text
    guess = msgspec.structs.replace(late.window, proven_begin=False, steps=[8, 9])
    text = flat(msgspec.structs.replace(late, window=guess))
    assert "begins: not proven: step 8" in text
    assert "step 8 to 9" in text


def test_cleared_ops_are_counted_and_named() -> None:
    text = flat(results.late())
    assert "Cleared: 288 ops custom__paged_lookup (id 270): its step was read back" in text


def test_undecided_names_nobody_but_says_what_to_run() -> None:
    text = flat(results.undecided())
    assert text.startswith("UNDECIDED: Nothing in this log tells which op failed.")
    assert "Suspects" not in text
    assert "# names the op MODULAR_DEBUG=device-sync-mode python serve.py" in text


def test_messenger_is_called_one() -> None:
    proven = results.proven()
    messenger = results.op("custom__nan_check_raise", 17, 583)
    told = msgspec.structs.replace(proven.conclusion, messenger=messenger)
    text = flat(msgspec.structs.replace(proven, conclusion=told))
    assert "custom__nan_check_raise (id 17) is the messenger" in text


def test_replay_verdict_is_shown() -> None:
    assert "Replay confirmed: failed in 2 of 2 attempts" in flat(results.proven())


def test_clean_log_has_no_failure_section_and_admits_the_nan_coverage() -> None:
    text = flat(results.clean())
    assert text.startswith("NONE: ")
    assert "What failed" not in text
    assert "the NaN check looked at 1 of 5 outputs of decoder (stride 20)" in text


def test_losses_notes_and_other_roots_are_told() -> None:
    text = flat(results.losses())
    assert "7 texts passed a gate" in text
    assert "rank1.log:2, max_ops: unexpected end" in text
    assert "rank1.log: the last line is cut" in text
    assert "process rank0 · rank 0 · serve.log:6926" in text
    assert "other root faults: " in text
    assert "at rank1.log:3" in text


def test_known_modes_are_shown_and_unknown_ones_are_not() -> None:
    text = flat(results.proven())
    assert "modes: device-sync-mode on, core dump off, op log TRACE" in text
    assert "launch blocking" not in text


@every_width
@every_result
def test_no_line_is_wider_than_the_terminal_except_commands(name: str, width: int) -> None:
    result = results.ALL[name]
    commands = {"  " + plain(step.command) for step in result.next_steps}
    lines = terminal.render(result, width=width).splitlines()
    assert [line for line in lines if cell_len(line) > width and line not in commands] == []


@pytest.mark.parametrize("width", [1, 20, 60])
def test_command_stays_on_one_line_of_its_own(width: int) -> None:
    assert "  " + results.COMMAND in terminal.render(results.late(), width=width).splitlines()


@every_width
@every_result
def test_plain_report_has_no_control_characters_and_no_trailing_space(name: str, width: int) -> None:
    text = terminal.render(results.ALL[name], width=width, color=False)
    assert text.endswith("\n")
    assert all(char == "\n" or char.isprintable() for char in text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_color_adds_escapes_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")  # the caller decides, not the environment
    late = results.late()
    colored = terminal.render(late, width=80, color=True)
    assert ESC in colored
    assert Text.from_ansi(colored).plain.split() == terminal.render(late, width=80).split()


@pytest.mark.parametrize("color", [True, False])
def test_log_text_is_neither_markup_nor_escape_sequence(color: bool) -> None:
    text = terminal.render(results.hostile(), width=200, color=color)
    assert r"evil\x1b[31m [bold]name[/bold] \u202etxt\r\n\x00" in text
    assert f"evil{ESC}" not in text
    assert "\u202e" not in text


def test_escapes_cover_every_plane() -> None:
    assert plain("a\tb\udcff\U000e0001é漢") == r"a\tb\udcff\U000e0001é漢"


def test_wide_characters_count_two_columns() -> None:
    suspect = msgspec.structs.replace(results.paged_suspect(), op=results.op("漢" * 100, 1, 1))
    text = terminal.render(results.result(suspects=[suspect]), width=60)
    assert max(map(cell_len, text.splitlines())) <= 60
    assert "".join(text.split()).count("漢") == 100


def test_op_without_any_record_says_so() -> None:
    op = schema.OpRef(name="kernel", id=None, process="", input=0, line=None)
    suspect = msgspec.structs.replace(results.paged_suspect(), op=op, source=[])
    assert "no op record" in flat(results.result(suspects=[suspect]))


def test_fused_op_shows_three_of_its_source_lines_and_counts_the_rest() -> None:
    source = [schema.SourceFrame(file="a.py", line=line, function="build") for line in (12, 37, 11, 10)]
    text = flat(results.result(suspects=[msgspec.structs.replace(results.paged_suspect(), source=source)]))
    assert "a.py:12 in build a.py:37 in build a.py:11 in build and 1 more source line" in text
    assert "a.py:10" not in text
