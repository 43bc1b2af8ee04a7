"""What a profile gives: device work with real times, and the framework ops that launched it.

``KERNELS``, one row a piece of device work, by start: kind str ("kernel", "memcpy", "memset"), name str,
device i32, stream i64, start_ns i64, duration_ns i64, correlation i64 or null, op str or null (the innermost
framework op that launched it; null = launched outside of any op), op_index u32 or null (row of ``OPS_SEEN``).

``OPS_SEEN``, one row a framework op of the host, by start: index u32, name str, thread i64, start_ns i64,
duration_ns i64 (host time: dispatch only, never device time).
"""

from __future__ import annotations

import msgspec
import polars as pl

KERNELS_SCHEMA = {
    "kind": pl.String(),
    "name": pl.String(),
    "device": pl.Int32(),
    "stream": pl.Int64(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "correlation": pl.Int64(),
    "op": pl.String(),
    "op_index": pl.UInt32(),
}
OPS_SCHEMA = {
    "index": pl.UInt32(),
    "name": pl.String(),
    "thread": pl.Int64(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
}


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that was read. ``source`` names its format."""

    source: str
    kernels: pl.DataFrame
    ops: pl.DataFrame

    @property
    def unassigned(self) -> int:
        """Pieces of device work that no framework op launched."""
        return self.kernels["op"].null_count()
