"""Integer inputs of an op that stand on a device, copied there and then without a wait (observed.md 40).

A read would wait for the device and hide races. A copy in stream order, between the op before and the op at
hand, shows what the op was given: it is in the file of marks when the mark behind it is. Runs in the recorded
program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from analyzer.record.ops.marks import DeviceMarks

WHOLE_BYTES = 4096  # of a tensor that is copied in full; of a larger one the range
# Ops of PyTorch that take an index from their integer inputs. Others only compute with them.
_INDEXING = (
    "embedding", "index", "gather", "scatter", "take", "put", "nll_loss", "cross_entropy", "one_hot",
    "bincount", "searchsorted", "unfold", "repeat_interleave", "segment", "multi_margin", "ctc_loss",
    "grid_sampler", "roi", "topk", "fill",
)  # fmt: skip


class Copied(NamedTuple):
    """Where the values of a tensor will be: ``whole`` = all of them, else the least and the largest one."""

    place: int
    size: int
    whole: bool
    stream: int
    number: int

    def text(self) -> str:
        """As it stands in the metadata of a saved input."""
        return ",".join(str(int(one)) for one in self)


def is_indexing(name: str) -> bool:
    """Whether an op may index with its integer inputs: what is not PyTorch's own is not known, so it may."""
    return not name.startswith(("aten::", "prims::")) or any(word in name for word in _INDEXING)


def copy_values(marks: DeviceMarks, tensor: Any, capture: str | None) -> Copied | None:
    """Enqueue the copy of a tensor of integers, or of its range; null = it cannot be had."""
    import torch

    values = tensor.detach()
    device = values.device.index
    size = values.numel() * values.element_size()
    if not size or device is None:
        return None
    whole = size <= WHOLE_BYTES
    if not whole and values.dtype in {torch.bool, torch.uint16, torch.uint32, torch.uint64}:
        return None
    parts = [values.contiguous()] if whole else list(torch.aminmax(values))
    size = sum(part.numel() * part.element_size() for part in parts)
    place = marks.reserve(-(-size // 8) * 8, device, capture)
    if place is None:
        return None
    at = place
    for part in parts:
        amount = part.numel() * part.element_size()
        if not marks.copy(part.data_ptr(), amount, at, device):
            return None
        at += amount
    mark = marks.mark(device, capture)
    return Copied(place, size, whole, (mark & 0xFFFF) - 1, mark >> 16) if mark else None
