"""The table of error codes (formats.md 2)."""

from __future__ import annotations

import pytest

from analyzer.tables.codes import (
    CODES,
    EXCEPTIONS,
    by_code,
    by_exception,
    by_gdb_text,
    by_name,
    by_text,
    vendor_of,
)


@pytest.mark.parametrize(
    "name", ["CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "hipErrorIllegalAddress"]
)
def test_names_of_all_apis_lead_to_one_code(name: str) -> None:
    row = by_name(name)
    assert row is not None
    assert (row.code, row.kind, row.site, row.sticky) == (700, "illegal_address", "B", True)


def test_every_row_is_found_by_code_names_and_text() -> None:
    for row in CODES:
        assert by_code(row.code) is row
        assert by_text(row.text) is row
        for name in (row.names.runtime, row.names.driver, row.names.hip):
            assert name is None or by_name(name) is row


def test_codes_names_and_texts_are_unique() -> None:
    names = [n for row in CODES for n in (row.names.runtime, row.names.driver, row.names.hip) if n]
    for values in ([row.code for row in CODES], [row.text for row in CODES], names):
        assert len(values) == len(set(values))


def test_721_is_the_tensor_memory_leak_and_226_is_contained() -> None:
    """The correction of formats.md 2."""
    assert by_name("CUDA_ERROR_TENSOR_MEMORY_LEAK") is by_code(721)
    assert by_name("cudaErrorContained") is by_code(226)


def test_hip_has_no_715_and_no_716() -> None:
    """They arrive there as queue errors (formats.md 3.17)."""
    for code in (715, 716):
        row = by_code(code)
        assert row is not None
        assert row.names.hip is None


def test_launch_errors_blame_their_own_call_and_device_faults_do_not() -> None:
    assert {row.code for row in CODES if row.site == "B"} >= {
        *range(714, 720),
        226,
        214,
        220,
        700,
        702,
        710,
        721,
    }
    assert {row.code for row in CODES if row.site == "A"} >= {1, 2, 9, 98, 209, 701, 720}
    assert all(row.sticky for row in CODES if row.site == "B")
    assert not any(row.sticky for row in CODES if row.site == "A")


def test_texts_are_found_in_any_case_and_with_a_full_stop() -> None:
    assert by_text("An illegal memory access was encountered.") is by_code(700)
    assert by_text("no ROCm-capable device is detected") is by_code(100)


def test_unknown_is_none_and_not_a_guess() -> None:
    assert by_code(12345) is None
    assert by_name("CUDA_ERROR_OF_TOMORROW") is None
    assert by_text("") is None
    assert by_exception("CUDBG_EXCEPTION_NEW") is None
    assert by_gdb_text("Warp New") is None


def test_debugger_exceptions_have_kinds() -> None:
    assert by_exception("CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS") == "illegal_address"
    assert by_exception("CUDBG_EXCEPTION_WARP_ASSERT") == "device_assert"
    assert by_gdb_text("Warp Illegal Address") == "illegal_address"
    assert by_gdb_text("Lane User Stack Overflow") == "launch_failure"
    assert [row.number for row in EXCEPTIONS] == list(range(1, 23))


def test_vendor_is_told_by_the_name() -> None:
    """A ROCm build says "CUDA error" too (formats.md 3.1)."""
    assert vendor_of("hipErrorAssert") == "amd"
    assert vendor_of("cudaErrorAssert") == vendor_of("CUDA_ERROR_ASSERT") == "nvidia"
    assert vendor_of("ERROR") is None


def test_a_driver_that_does_not_fit_is_configuration() -> None:
    for text in (
        "CUDA driver version is insufficient for CUDA runtime version",
        "API call is not supported in the installed CUDA driver",
        "forward compatibility was attempted on non supported HW",
        "all CUDA-capable devices are busy or unavailable",
    ):
        row = by_text(text)
        assert row is not None, text
        assert (row.kind, row.site, row.sticky) == ("configuration", "A", False)
