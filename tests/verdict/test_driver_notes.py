"""What the conclusion and the next steps say about the kernel log."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests import samples

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
FAILED = "RuntimeError: CUDA error: unspecified launch failure"
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
    near = analysed(tmp_path, ["INFO 09-18 10:41:10 [core.py:214] Batch", FAILED], [logged])
    far = analysed(tmp_path, ["INFO 09-19 13:11:10 [core.py:214] Batch", FAILED], [logged])
    assert [one.conclusion.cause_class for one in (near, far)] == ["hardware", "software"]


def test_the_stamp_of_the_kernel_above_an_error_is_not_the_programs(tmp_path: Path) -> None:
    """A kernel log with a program's log behind it."""
    logged = ECC.format(bus="3b").replace("[73310.448131]", "[Fri Sep 18 10:41:09 2026]")
    assert analysed(tmp_path, [logged, ERROR]).conclusion.cause_class == "software"


KILLED = "[Fri Sep 18 10:41:09 2026] Out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:8kB"
GONE = "09-18 10:41:10 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down"


def test_hardware_that_only_a_time_joins_is_likely_and_asks_for_a_comparison(tmp_path: Path) -> None:
    logged = ECC.format(bus="3b").replace("[73310.448131]", "[Fri Sep 18 10:41:09 2026]")
    result = analysed(tmp_path, ["INFO 09-18 10:41:10 [core.py:214] Batch", FAILED], [logged])
    assert (result.conclusion.confidence, result.conclusion.cause_class) == ("likely", "hardware")
    assert any(note.startswith("only the time joins") for note in result.conclusion.notes)


def test_hardware_at_that_time_leaves_the_cause_open_where_a_pid_differs(tmp_path: Path) -> None:
    contained = "[Fri Sep 18 10:41:09 2026] NVRM: Xid (PCI:0000:5e:00): 94, pid=7777, name=python3, Contained"
    result = analysed(
        tmp_path, [f"(EngineCore pid=218) ERROR 09-18 10:41:10 [core.py:1] {FAILED}"], [contained]
    )
    assert (result.conclusion.confidence, result.conclusion.cause_class) == ("undecided", None)
    assert any("came at the same time, and nothing else" in note for note in result.conclusion.notes)


def test_a_kill_of_somebody_else_is_told_and_blamed_for_nothing(tmp_path: Path) -> None:
    killed = KILLED.format(pid=4711, name="node")
    alone = analysed(tmp_path, [killed])
    assert (alone.conclusion.confidence, alone.conclusion.cause_class) == ("none", None)
    beside = analysed(tmp_path, [f"(APIServer pid=21) ERROR {GONE}"], [killed])
    assert [fault.role for fault in beside.faults] == ["root", "bystander"]
    assert beside.conclusion.confidence == "undecided"
    for result in (alone, beside):
        assert any("the kernel killed node (pid 4711)" in note for note in result.conclusion.notes)


def test_a_hang_of_an_amd_gpu_speaks_neither_for_software_nor_for_hardware(tmp_path: Path) -> None:
    result = analysed(
        tmp_path, ["[ 5.100001] amdgpu 0000:c4:00.0: ring comp_1.1.0 timeout, signaled seq=1, emitted seq=3"]
    )
    assert (result.conclusion.confidence, result.conclusion.cause_class) == ("undecided", None)
    assert any("the firmware or the board" in note for note in result.conclusion.notes)
    assert any(step.command.startswith("amd-smi") for step in result.next_steps)
