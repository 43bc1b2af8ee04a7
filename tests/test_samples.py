"""Every shipped sample, at the border: log in, facts and JSON out."""

from __future__ import annotations

import difflib
from collections import Counter

import pytest

from analyzer.ingest.envelope import LAYERS
from analyzer.scoreboard import Case
from analyzer.witness import witnesses
from tests import samples
from tests.prefixes import layers_shown

every_case = pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)


@every_case
def test_sample_states_the_known_facts(case: Case) -> None:
    found = list(samples.differences(case.expected, samples.analysis(case.name)))
    assert not found, f"{case.name} ({case.folder}/expected.json):\n  " + "\n  ".join(found)


@every_case
def test_every_line_is_counted_once(case: Case) -> None:
    counts = samples.analysis(case.name).accounting
    total = counts.parsed + counts.continuation + counts.ignored + counts.unrecognised
    assert total == counts.total_lines, counts


@every_case
def test_sample_has_an_origin(case: Case) -> None:
    assert (case.folder / "ORIGIN.md").read_text(encoding="utf-8").startswith("# Origin\n")


@every_case
def test_golden_json_is_unchanged(case: Case, update_golden: bool) -> None:
    path = case.folder / "golden.json"
    now = samples.golden(samples.analysis(case.name)).decode()
    if update_golden:
        path.write_text(now, encoding="utf-8")
    assert path.exists(), f"{path} is missing: run pytest --update-golden and review what it wrote"
    before = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(before.splitlines(), now.splitlines(), "golden", "now", lineterm="", n=2)
    assert now == before, f"{case.name} changed; if that is right: pytest --update-golden\n" + "\n".join(diff)


def test_every_witness_has_two_samples() -> None:
    """A witness without real texts that it reads is untested (style.md)."""
    shown = Counter(case.witness for case in samples.cases())
    few = {witness.name: shown[witness.name] for witness in witnesses() if shown[witness.name] < 2}
    assert not few, f"fewer than two cases in sample_logs/<witness>/: {few}"


def test_sample_folder_is_read_by_its_witness() -> None:
    """A sample that its own witness no longer recognises is an error."""
    for case in samples.cases():
        found = {name for one in samples.analysis(case.name).inputs for name in one.witnesses}
        assert case.witness in found, f"{case.name}: recognised only by {sorted(found)}"


def test_every_layer_of_an_envelope_has_two_samples() -> None:
    """A prefix counts where text that a witness looks at stands behind it.

    The prefixes of the property tests stand before the lines of every sample.
    """
    shown: Counter[str] = Counter()
    for case in samples.cases():
        inputs = samples.analysis(case.name).inputs
        shown.update({layer for one in inputs for name in one.envelopes for layer in name.split("+")})
    few = {name: shown[name] for name in {layer.name for layer in LAYERS} - layers_shown() if shown[name] < 2}
    assert not few, f"fewer than two cases under sample_logs/ with {few}"
