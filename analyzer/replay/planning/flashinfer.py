"""Calls that FlashInfer's flight recorder dumped (``FLASHINFER_LOGLEVEL=10``), as calls of its functions.

Format: flashinfer/api_logging.py of flashinfer-ai/flashinfer. One folder a call,
``<time>_pid<pid>_<function>_call<n>/``: ``metadata.jsonl`` (the last line is the fullest), ``inputs.pt`` or
``inputs.safetensors``, and outputs in the same way if the call returned. A method's object is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from analyzer.replay.executors.flashinfer_calls import is_of_flashinfer
from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning.captures import read_whole
from analyzer.replay.planning.inside import is_inside

CALLS_SHOWN = 200  # the last ones: a fault is in one of the last calls
_METADATA = "metadata.jsonl"
_FILES = ("inputs.pt", "inputs.safetensors")
_METADATA_LIMIT = 16 << 20
_SIZE_LIMIT = 1 << 62  # what JSON and tensors can hold
_PLAIN = (bool, int, float, str)


class Dumped:
    """The calls of some folders, in order of time."""

    def __init__(self, folders: Iterable[Path]) -> None:
        found = sorted(
            {one.resolve() for folder in folders for one in _calls(folder) if is_inside(folder, one)},
            key=lambda one: one.name,
        )
        self._folders = found[-CALLS_SHOWN:]
        self.left_out = len(found) - len(self._folders)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._folders)

    def plan(self, first: int) -> Iterator[PlanOp]:
        """One op a call, numbered from ``first``."""
        for number, folder in enumerate(self._folders, first):
            yield plan_call(folder, number)


def _calls(folder: Path) -> Iterable[Path]:
    """The folder itself, or those in it; ``graph_flushes`` inside of them are older states of it."""
    if not folder.is_dir():
        return []
    if (folder / _METADATA).is_file():
        return [folder]
    return [path.parent for path in folder.glob(f"*/{_METADATA}")]


def plan_call(folder: Path, number: int) -> PlanOp:
    """One dumped call."""
    told = _last_record(folder / _METADATA)
    module, function = str(told.get("module") or ""), str(told.get("function_name") or folder.name)
    name = f"{module}.{function}" if module else function
    plan = PlanOp(number=number, name=name, executor="user", call=name)
    details = _mapping(told.get("tensor_details"))
    reader = _Arguments(folder, details)
    arguments = tuple(reader.read(told))
    why_not = _why_not(told, module, name, reader, arguments)
    devices = [one.device for argument in arguments for one in _tensors(argument)]
    return PlanOp(
        number=plan.number,
        name=plan.name,
        executor=plan.executor,
        call=plan.call,
        arguments=arguments if why_not is None else (),
        outputs=tuple(reader.tensors_of(_outputs(told))),
        device=devices[0] if devices else None,
        why_not=why_not,
    )


def _why_not(
    told: Mapping[str, Any], module: str, name: str, reader: _Arguments, arguments: Iterable[PlanArgument]
) -> str | None:
    if not told or not module:
        return f"{_METADATA} of its dump cannot be read"
    if not is_of_flashinfer(name):
        return f"{name} is no function of FlashInfer: its dumps name no other; `--ops FILE` can give one"
    if told.get("self_id") is not None:
        return "a method: the state of its object is not in the dump of the call"
    if reader.lost:
        return f"{reader.lost} is an object that the dump does not hold"
    if reader.file is None and any(_tensors(one) for one in arguments):
        return "its inputs are not in the dump (CUDA graph that was never replayed?)"
    return None


def _last_record(path: Path) -> Mapping[str, Any]:
    """The last line that is whole: the process may have died while it wrote one."""
    try:
        if path.stat().st_size > _METADATA_LIMIT:
            return {}
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            found = json.loads(line)
            json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is in no name
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


class _Arguments:
    """Arguments of one call. ``lost``: name of one that cannot be made again."""

    def __init__(self, folder: Path, details: Mapping[str, Any]) -> None:
        self.file = next(
            (path for path in (folder / one for one in _FILES) if path.is_file() and is_inside(folder, path)),
            None,
        )
        self.lost: str | None = None
        self._details = details

    def read(self, told: Mapping[str, Any]) -> Iterator[PlanArgument]:
        """Positional ones as ``arg0``, ``arg1``, then those with names."""
        values = _mapping(told.get("input_metadata"))
        keys = _mapping(told.get("tensor_info")).get("input_tensor_keys")
        tensors = [str(one) for one in keys] if isinstance(keys, list) else []
        names = dict.fromkeys([*values, *(one for one in tensors if "__" not in one)])
        numbers = {key: read_whole(key[4:]) for key in names if key.startswith("arg_")}
        places = {key: place for key, place in numbers.items() if place is not None and place >= 0}
        ordered = sorted(places, key=places.__getitem__) + [key for key in names if key.startswith("kwarg_")]
        for key in ordered:
            name = f"arg{places[key]}" if key in places else key.removeprefix("kwarg_")
            if key in values:
                yield self._value(name, key, values[key])
            else:
                yield PlanArgument(name=name, tensor=self._tensor(key))

    def tensors_of(self, keys: Iterable[str]) -> Iterator[PlanTensor]:
        """Tensors whose types are told, without values."""
        for key in keys:
            found = self._tensor(key)
            if found is not None:
                yield PlanTensor(
                    shape=found.shape, dtype=found.dtype, device=found.device, stride=found.stride
                )

    def _tensor(self, key: str) -> PlanTensor | None:
        """FlashInfer copies to the host before it notes the device; its functions run on the GPU."""
        told = _mapping(self._details.get(key))
        try:
            shape = tuple(int(one) for one in told["shape"])
            stride = tuple(int(one) for one in told["stride"])
            dtype, device = str(told["dtype"]), str(told.get("device", "cpu"))
        except (KeyError, TypeError, ValueError, OverflowError):
            self.lost = self.lost or key
            return None
        if not all(abs(one) < _SIZE_LIMIT for one in (*shape, *stride)):
            self.lost = self.lost or key
            return None
        return PlanTensor(
            shape=shape,
            dtype=dtype.removeprefix("torch."),
            device="cuda:0" if device == "cpu" else device,
            stride=stride or None,
            fidelity="recorded",
            file=str(self.file) if self.file else None,
            key=key,
        )

    def _value(self, name: str, key: str, value: Any) -> PlanArgument:
        if isinstance(value, int) and abs(value) >= _SIZE_LIMIT:
            self.lost = self.lost or name
            return PlanArgument(name=name)
        if value is None or isinstance(value, _PLAIN):
            return PlanArgument(name=name, value=value)
        kind = value.get("type") if isinstance(value, dict) else None
        if kind == "torch.dtype":
            return PlanArgument(name=name, text=str(value.get("value")))
        if kind == "torch.Tensor":
            return PlanArgument(name=name, tensor=self._tensor(str(value.get("tensor_key") or key)))
        items = value.get("items") if kind in {"list", "tuple"} else None
        if isinstance(items, list) and not value.get("truncated"):
            return self._list(name, key, items)
        self.lost = self.lost or name
        return PlanArgument(name=name)

    def _list(self, name: str, key: str, items: list[Any]) -> PlanArgument:
        if items and all(one is None or _is_tensor(one) for one in items):
            found = [None if one is None else self._tensor(f"{key}__{i}") for i, one in enumerate(items)]
            return PlanArgument(name=name, tensors=tuple(found))
        if all(isinstance(one, _PLAIN) for one in items):
            return PlanArgument(name=name, value=items)
        self.lost = self.lost or name
        return PlanArgument(name=name)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "torch.Tensor"


def _outputs(told: Mapping[str, Any]) -> list[str]:
    keys = _mapping(told.get("tensor_info")).get("output_tensor_keys")
    return [str(one) for one in keys] if isinstance(keys, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tensors(argument: PlanArgument) -> list[PlanTensor]:
    several = [one for one in argument.tensors or () if one is not None]
    return [argument.tensor, *several] if argument.tensor is not None else several
