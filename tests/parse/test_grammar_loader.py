"""The loader of grammars: where they are found, and what a failed parse says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analyzer import grammar
from analyzer.errors import AnalyzerError
from analyzer.grammar import GrammarError, data_path, load, parse, parse_distinct
from analyzer.parse.op_name import parse_op_name


def test_a_checkout_has_its_grammars_beside_the_package() -> None:
    assert (data_path("grammars") / "common.lark").is_file()


def test_a_wheel_has_its_grammars_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's top-level "grammars" in site-packages must not win."""
    shipped = tmp_path / "analyzer" / "_data" / "grammars"
    for folder in (shipped, tmp_path / "grammars"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(grammar, "__file__", str(tmp_path / "analyzer" / "grammar.py"))
    data_path.cache_clear()
    assert data_path("grammars") == shipped
    data_path.cache_clear()


def test_a_missing_folder_is_a_broken_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "__file__", str(tmp_path / "analyzer" / "grammar.py"))
    data_path.cache_clear()
    with pytest.raises(AnalyzerError, match="install trace-analyze again"):
        data_path("sample_logs")
    data_path.cache_clear()


def test_an_unknown_grammar_is_named() -> None:
    with pytest.raises(AnalyzerError, match="no_such"):
        load("no_such")


def test_a_grammar_is_built_once() -> None:
    assert load("op_name") is load("op_name")


def test_importing_the_parsers_does_not_import_lark() -> None:
    """Startup pays for Lark only when a text needs it."""
    code = "import sys, analyzer.parse.ir_file, analyzer.parse.op_detail; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_error_tells_where_and_what_was_expected() -> None:
    with pytest.raises(GrammarError) as caught:
        parse_op_name("Epilogue(matmul, ")
    assert caught.value.position == len("Epilogue(matmul,")
    assert "WORD" in caught.value.expected
    with pytest.raises(GrammarError) as caught:
        parse_op_name("a)")
    assert (caught.value.position, caught.value.expected) == (1, ("end of text",))
    assert isinstance(caught.value, ValueError)


def test_imported_terminals_are_named_in_errors() -> None:
    with pytest.raises(GrammarError) as caught:
        parse("fusion_info", "  Prologue (a")
    assert caught.value.expected == ("EQUALS",)


@pytest.mark.parametrize("opening", ["a(", "a<", "a[", "a(b=("])
def test_deep_nesting_is_refused_and_not_a_recursion_error(opening: str) -> None:
    closing = {"(": ")", "<": ">", "[": "]"}[opening[-1]]
    head, last = opening[:-1], opening[-1]
    text = f"{head}{last * 3000}{closing * 3000}" if head != "a(b=" else f"a(b={'(' * 3000}{')' * 3000})"
    with pytest.raises(GrammarError):
        parse_op_name(text)


def test_deep_calls_are_refused_and_not_a_recursion_error() -> None:
    with pytest.raises(GrammarError, match="at most"):
        parse_op_name("a(" * 3000 + "a" + ")" * 3000)


def test_each_distinct_text_is_parsed_once() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        if not text:
            raise GrammarError("none", text, 0, ())
        return len(text)

    assert parse_distinct(["ab", "", "ab", "c", ""], count) == {"ab": 2, "": None, "c": 1}
    assert seen == ["ab", "", "c"]
