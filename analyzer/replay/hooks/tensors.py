"""What the journal says of the tensors of an op."""

from __future__ import annotations

from typing import Any

_MOST = 64  # tensors of one op; a foreach op over a whole optimiser has thousands
_MOST_INDICES = 1 << 20  # elements of an integer tensor whose range is read: at most 8 MB, read on the device
_INDEX_TYPES = ("torch.int64", "torch.int32")


def tensors_in(values: Any) -> list[Any]:
    """The tensors of arguments or results, two levels deep, in order."""
    import torch

    found: list[Any] = []
    stack = [iter([values])]
    while stack and len(found) < _MOST:
        for value in stack[-1]:
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, dict):
                stack.append(iter(value.values()))
                break
            elif isinstance(value, (list, tuple)) and len(stack) < 4:
                stack.append(iter(value))
                break
        else:
            stack.pop()
    return found


def describe(values: Any) -> list[dict[str, object]]:
    """Shape, dtype, device and storage of each tensor, and the range of those that can be indices."""
    return [_describe(tensor) for tensor in tensors_in(values)]


def describe_layout(values: Any) -> list[dict[str, object]]:
    """The same without reading any value: for results, and for a device that is lost."""
    return [_layout(tensor) for tensor in tensors_in(values)]


def sizes_of(tensor: Any) -> list[int | None]:
    """The shape; null where a size is not one number. A nested tensor has no shape that can be asked for."""
    if tensor.is_nested:
        return [int(tensor.size(0)), *[None] * (tensor.dim() - 1)]
    return [int(size) if isinstance(size, int) else None for size in tensor.shape]


def _describe(tensor: Any) -> dict[str, object]:
    facts = _layout(tensor)
    if facts.get("dtype") in _INDEX_TYPES and "storage" in facts and 0 < tensor.numel() <= _MOST_INDICES:
        import torch

        if not (tensor.is_cuda and torch.cuda.is_current_stream_capturing()):
            facts["low"], facts["high"] = int(tensor.min()), int(tensor.max())
    return facts


def _layout(tensor: Any) -> dict[str, object]:
    facts: dict[str, object] = {
        "shape": sizes_of(tensor),
        "dtype": str(tensor.dtype),
        "device": str(tensor.device),
    }
    if _has_storage(tensor):
        facts["storage"] = tensor.untyped_storage().data_ptr()
    return facts


def _has_storage(tensor: Any) -> bool:
    """Real memory in one layout: no fake, meta, sparse, nested or wrapper tensor."""
    import torch

    real = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    strided = tensor.layout is torch.strided and not tensor.is_nested
    return real and strided and tensor.device.type != "meta"
