"""A name that the end of the input cuts is nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result

ABORT = "Callback: Queue 0x7fc2 aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: text. code: 0x2b\n"
DUMP = """\
[09:14:00.000001] coredump: Starting GPU coredump generation
[09:14:00.000002] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)
[09:14:00.000003] coredump:   - Device: 0
[09:14:00.000004] coredump:   #0\t0x7feecf7cfe70\tadd_embeddings"""
GDB = """\
[Current focus set to CUDA kernel 0, grid 180, block (3,0,0), thread (0,0,0), device 0, sm 1, warp 3, lane 0]
CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7f8eaf7d5080  add_embeddings"""
BLOCK = """\
========= Invalid __global__ read of size 4 bytes
=========     at add_embeddings"""


def analysed(folder: Path, text: str) -> Result:
    path = folder / "input.log"
    path.write_text(text, encoding="utf-8")
    return analyze([str(path)])


@pytest.mark.parametrize(
    "text",
    [
        ABORT + "Kernel Name: add_embed",
        DUMP,
        GDB,
        BLOCK,
        BLOCK + "+0x",
        DUMP + "\n[09:14:00.000005] coredump:   #1\t0x7fee",
        BLOCK
        + "+0x100 in /srv/k.cuh:3\n=========     by thread (7,0,0) in block (0,0,0)\n=========     Devi",
    ],
)
def test_a_cut_name_is_no_kernel(tmp_path: Path, text: str) -> None:
    found = analysed(tmp_path, text)
    assert found.conclusion.confidence == "undecided"
    assert "the input ends" in found.conclusion.statement
    assert not found.suspects
    assert {(fault.kernel, fault.reported_at.kernel) for fault in found.faults} == {(None, None)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (ABORT + "Kernel Name: add_embed\nAborted (core du", "add_embed"),
        (DUMP + "\n[09:14:00.000005] coredump: Writing ELF file to /tm", "add_embeddings"),
        (BLOCK + "+0x100 in /srv/k.cu:3\n=========     by thread (7,0,0) in bl", "add_embeddings"),
        (BLOCK + f"+0x100 in /srv/k.cu:3\n{BLOCK}", "add_embeddings"),
    ],
)
def test_a_name_above_the_cut_line_is_whole(tmp_path: Path, text: str, name: str) -> None:
    found = analysed(tmp_path, text)
    assert found.conclusion.confidence == "proven"
    assert found.suspects[0].op.name == name
