"""What the conclusion and the next steps say about the kernel log."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests import samples

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
ECC = "[73310.448131] NVRM: Xid (PCI:0000:{bus}:00): 48, An uncorrectable double bit error (DBE) has been"
MMU = "[73310.448131] NVRM: Xid (PCI:0000:3b:00): 31, pid={pid}, name=python3, Ch 00000008. MMU Fault"
SMI = "nvidia-smi --query-compute-apps=pid,gpu_bus_id"


def analysed(tmp_path: Path, *texts: list[str]) -> Result:
    paths = [tmp_path / f"{at}.log" for at in range(len(texts))]
    for path, lines in zip(paths, texts, strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path) for path in paths])


def test_hardware_that_nothing_links_is_told_with_the_command_that_tells(tmp_path: Path) -> None:
    result = analysed(tmp_path, [ERROR, ECC.format(bus="3b")])
    told = "\n".join(result.conclusion.notes)
    assert result.conclusion.cause_class == "software"
    assert (
        "a hardware message (line 2: Xid 48 on 0000:3b:00, double-bit memory error) that nothing links"
        in told
    )
    assert SMI in told
    commands = [step.command for step in result.next_steps]
    assert "nvidia-smi -q -d ECC,ROW_REMAPPER" in commands
    assert any(command.startswith(SMI) for command in commands)


def test_a_line_of_another_input_is_not_told_as_one_of_the_roots_input(tmp_path: Path) -> None:
    """Reports cite plain line numbers in the input of the root fault."""
    (note,) = analysed(tmp_path, [ERROR], [ECC.format(bus="3b")]).conclusion.notes
    assert "(input 2:1: Xid 48" in note
    assert "line 1" not in note


def test_three_messages_are_cited_and_the_rest_is_counted(tmp_path: Path) -> None:
    result = analysed(tmp_path, [ERROR, *(ECC.format(bus=f"{bus}b") for bus in range(1, 6))])
    notes = result.conclusion.notes
    assert [note.count("nothing links") for note in notes] == [1, 1, 1, 0]
    assert notes[-1].startswith("and 2 more")


def test_a_software_log_cites_its_messages(tmp_path: Path) -> None:
    result = analysed(tmp_path, [MMU.format(pid=number) for number in range(101, 106)])
    assert "(line 1, line 2, line 3 and 2 more)" in result.conclusion.notes[0]


def test_a_log_of_a_clean_up_says_what_the_driver_did() -> None:
    result = samples.analysis("xid/lone_xid45")
    assert result.conclusion.statement.startswith("No fault found")
    (note,) = result.conclusion.notes
    assert "Xid 45: the driver removed the channels of VLLM::Worker_TP pid=88120" in note


@pytest.mark.parametrize("case", ["xid/ecc_same_pid", "xid/ecc_in_container"])
def test_linked_hardware_is_the_cause_and_asks_for_no_comparison(case: str) -> None:
    result = samples.analysis(case)
    assert result.conclusion.cause_class == "hardware"
    assert not any("nothing links" in note for note in result.conclusion.notes)
    assert not any(step.command.startswith(SMI) for step in result.next_steps)


def test_the_drivers_verdict_is_told_and_leaves_the_cause_open() -> None:
    """A reset is asked for after faults of software too."""
    result = samples.analysis("xid/recovery_verdict")
    assert result.conclusion.cause_class is None
    assert any("verdict on GPU 0000:3b:00: Node Reboot Required" in note for note in result.conclusion.notes)
    assert "nvidia-smi -q" in [step.command for step in result.next_steps]


def test_an_xid_that_no_table_has_is_neither_software_nor_hardware(tmp_path: Path) -> None:
    result = analysed(tmp_path, ["[73310.448131] NVRM: Xid (PCI:0000:3b:00): 999, something new"])
    assert result.conclusion.cause_class is None


def test_the_line_above_an_error_without_a_stamp_tells_its_time(tmp_path: Path) -> None:
    logged = ECC.format(bus="3b").replace("[73310.448131]", "[Fri Sep 18 10:41:09 2026]")
    near = analysed(tmp_path, ["INFO 09-18 10:41:10 [core.py:214] Batch", ERROR], [logged])
    far = analysed(tmp_path, ["INFO 09-19 13:11:10 [core.py:214] Batch", ERROR], [logged])
    assert [one.conclusion.cause_class for one in (near, far)] == ["hardware", "software"]


def test_the_stamp_of_the_kernel_above_an_error_is_not_the_programs(tmp_path: Path) -> None:
    """A kernel log with a program's log behind it."""
    logged = ECC.format(bus="3b").replace("[73310.448131]", "[Fri Sep 18 10:41:09 2026]")
    assert analysed(tmp_path, [logged, ERROR]).conclusion.cause_class == "software"
