"""The JSON report: valid against the published schema, stable, complete."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from analyzer import schema
from analyzer.report import json as json_report
from tests.report import results

every_result = pytest.mark.parametrize("name", results.ALL)


@every_result
def test_json_is_valid_against_the_published_schema(name: str) -> None:
    published = json.loads(json.dumps(schema.json_schema()))
    validator = jsonschema.Draft202012Validator
    validator.check_schema(published)
    validator(published).validate(json.loads(json_report.render(results.ALL[name])))


def test_schema_refuses_a_word_outside_the_vocabulary() -> None:
    document = json.loads(json_report.render(results.late()))
    document["faults"][0]["trust"] = "maybe"
    with pytest.raises(jsonschema.ValidationError, match="'maybe' is not one of"):
        jsonschema.validate(document, schema.json_schema())


@every_result
def test_json_holds_the_whole_result(name: str) -> None:
    text = json_report.render(results.ALL[name])
    assert msgspec.json.decode(text, type=schema.Result) == results.ALL[name]


def test_fields_come_in_the_order_of_the_schema_and_none_is_left_out() -> None:
    document = json.loads(json_report.render(results.clean()))
    assert list(document) == list(schema.Result.__struct_fields__)
    assert document["window"] is None


def test_json_is_indented_by_two_and_ends_with_a_newline() -> None:
    text = json_report.render(results.clean()).decode()
    assert text.startswith('{\n  "schema_version": "1.0",\n')
    assert text.endswith("\n}\n")


def test_control_characters_are_escaped() -> None:
    text = json_report.render(results.hostile()).decode()
    assert "\x1b" not in text
    assert "\\u001b" in text


def test_same_result_gives_the_same_bytes() -> None:
    assert json_report.render(results.late()) == json_report.render(results.late())
