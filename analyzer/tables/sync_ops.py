"""Ops of PyTorch whose call returns only when the device has done all earlier work of its stream, as data.

They give the host a value that the device computed. One whose call returned is a successful copy to the host.
"""

from __future__ import annotations

SYNC_OPS = frozenset(
    {
        "aten::_local_scalar_dense",
        "aten::item",
        "aten::is_nonzero",
        "aten::equal",
        "aten::nonzero",
        "aten::masked_select",
        "aten::_unique2",
        "aten::unique_consecutive",
        "aten::unique_dim",
    }
)
