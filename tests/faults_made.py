"""Fault records for tests: an illegal address met by a copy, with changes."""

from __future__ import annotations

import msgspec

from analyzer.model import FaultRecord

_LATE = FaultRecord(
    source=0,
    process="",
    line=100,
    last_line=100,
    block_first=100,
    text="CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)",
    witness="max_errors",
    kind="illegal_address",
    site="sync",
    code=700,
    name="CUDA_ERROR_ILLEGAL_ADDRESS",
    vendor="nvidia",
)


def fault(**changes: object) -> FaultRecord:
    """The record with ``changes``; a new ``line`` moves its block there as well."""
    line = changes.get("line")
    moved = {"last_line": line, "block_first": line} if line is not None else {}
    return msgspec.structs.replace(_LATE, **{**moved, **changes})
