"""Nsight Systems SQLite exports (table and column names of nsys 2024: CUPTI_ACTIVITY_KIND_*, NVTX_EVENTS)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from analyzer.errors import InputError
from analyzer.profile.read import read_profile


def export(path: Path, *, kernels: bool = True) -> Path:
    base = sqlite3.connect(path)
    base.executescript(
        """
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, bytes);
        CREATE TABLE NVTX_EVENTS (start, end, globalTid, text, textId);
        INSERT INTO StringIds VALUES (1, 'gemm_kernel'), (2, 'decoder step');
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
            (110, 115, 9, 1, 0), (140, 142, 9, 2, 0), (300, 310, 9, 3, 0);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (400, 450, 0, 7, 3, 64);
        INSERT INTO NVTX_EVENTS VALUES
            (100, 200, 9, NULL, 2), (105, 120, 9, 'aten::mm', NULL), (90, 95, 9, 'x', NULL);
        """
    )
    if kernels:
        base.executescript(
            """
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
                (start, end, deviceId, streamId, correlationId, demangledName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1030, 0, 7, 1, 1), (1040, 1044, 0, 13, 2, 1);
            """
        )
    base.commit()
    base.close()
    return path


def test_kernels_belong_to_the_innermost_range_around_their_launch(tmp_path: Path) -> None:
    profile = read_profile(export(tmp_path / "x.sqlite"))
    assert profile.source == "nsys"
    rows = profile.kernels.select("kind", "name", "stream", "duration_ns", "op").rows()
    assert rows == [
        ("memcpy", "memcpy", 7, 50, None),
        ("kernel", "gemm_kernel", 7, 30, "aten::mm"),
        ("kernel", "gemm_kernel", 13, 4, "decoder step"),
    ]


def test_copies_to_the_host_are_told_where_the_export_knows(tmp_path: Path) -> None:
    path = export(tmp_path / "x.sqlite")
    base = sqlite3.connect(path)
    base.executescript(
        "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY ADD copyKind;"
        "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 2"
    )
    base.close()
    assert read_profile(path).kernels["name"].to_list()[0] == "memcpy DtoH"


def test_an_export_without_cuda_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="was CUDA traced"):
        read_profile(export(tmp_path / "x.sqlite", kernels=False))


def test_a_broken_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"\x00" * 50)
    with pytest.raises(InputError, match="nsys SQLite export"):
        read_profile(path)
