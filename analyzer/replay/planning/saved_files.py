"""Shapes and types of tensors that ``torch.save`` wrote, read without torch.

Nothing of the file is executed: the pickle inside may only name torch's own rebuild functions and types, and
these are answered by stand-ins that keep what they are given.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from analyzer.replay.planning.captures import SavedTensor

_STORAGES: Mapping[str, str] = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16",
    "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
# Whatever a damaged archive or pickle makes these raise.
_UNREADABLE = (
    OSError, ValueError, KeyError, IndexError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError,
    StopIteration, zipfile.BadZipFile, zlib.error, pickle.UnpicklingError,
)  # fmt: skip
_PICKLE_LIMIT = 64 << 20  # of the part without values: millions of tensors


class _Storage(msgspec.Struct, frozen=True):
    dtype: str
    device: str


class _Tensor(msgspec.Struct, frozen=True):
    storage: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str | None = None


def read_saved(path: Path) -> dict[str | None, SavedTensor]:
    """Tensors of a file by name (null = the file is one tensor); empty = it cannot be read as such a file."""
    try:
        value = _unpickle(path)
    except _UNREADABLE:
        return {}
    named = {None: value} if isinstance(value, _Tensor) else value if isinstance(value, dict) else {}
    return {
        name: SavedTensor(
            shape=one.shape,
            dtype=one.dtype or one.storage.dtype,
            device=one.storage.device,
            stride=one.stride if one.shape else None,
            file=str(path.resolve()),
            key=name,
        )
        for name, one in named.items()
        if isinstance(one, _Tensor) and isinstance(one.storage, _Storage) and isinstance(name, str | None)
    }


def _unpickle(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        inside = next(info for info in archive.infolist() if info.filename.endswith("data.pkl"))
        if inside.file_size > _PICKLE_LIMIT:
            raise ValueError("more names than any dump has")
        pickled = archive.read(inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd escapes in texts that no tensor has
        _check_memo(pickled)
        return _Reader(io.BytesIO(pickled)).load()


def _check_memo(pickled: bytes) -> None:
    """A place in the memo beyond what the bytes can fill would be given memory all the same.

    Raises:
        ValueError: There is one, or the bytes are no pickle.
    """
    for code, argument, _ in pickletools.genops(pickled):
        if code.name.endswith("PUT") and isinstance(argument, int) and argument > len(pickled):
            raise ValueError("a damaged file")


class _Reader(pickle.Unpickler):
    """Answers names with stand-ins; any other name is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a name of the file."""
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): dict,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuilt,
            ("torch._utils", "_rebuild_tensor_v3"): _rebuilt_typed,
            ("torch._utils", "_rebuild_parameter"): _of_parameter,
        }
        if (module, name) in known:
            return known[module, name]
        if module in {"torch", "torch.storage"} and (name in _STORAGES or name == "UntypedStorage"):
            return _STORAGES.get(name, "uint8")
        if module == "torch" and name.isidentifier():
            return _Word(name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a tensor")

    def persistent_load(self, pid: Any) -> _Storage:
        """``("storage", type, key, device, elements)``."""
        _, kind, _, device, _ = pid
        if kind not in {*_STORAGES.values()}:
            raise pickle.UnpicklingError("a storage of no type")
        return _Storage(kind, str(device))


class _Word(msgspec.Struct, frozen=True):
    """A dtype of torch."""

    name: str


def _rebuilt(storage: Any, _offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> _Tensor:
    return _Tensor(storage, tuple(shape), tuple(stride))


def _rebuilt_typed(
    storage: Any, _offset: int, shape: tuple[int, ...], stride: tuple[int, ...], _grad: Any, _hooks: Any,
    dtype: Any, *_: Any,
) -> _Tensor:  # fmt: skip
    return _Tensor(storage, tuple(shape), tuple(stride), dtype.name if isinstance(dtype, _Word) else None)


def _of_parameter(data: Any, *_: Any) -> Any:
    return data
