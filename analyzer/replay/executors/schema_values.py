"""Arguments of a torch op by its schema: texts of a log read, what is missing left to its default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from analyzer.replay.executors.call import Bound, CannotRunError

CUT_AT = (
    60  # characters of a value in the op log of ``record`` (record/ops/signature.py): longer ones are cut
)
_NOTHING = frozenset({"None", "null", "_", ""})


class Reader(NamedTuple):
    """Reads one value. ``device`` gives the device to use for a recorded one."""

    torch: Any
    device: Callable[[str], Any]

    def read(self, value: Any, kind: str) -> Any:
        """A value of the plan, or the text of the log, as the schema's type wants it.

        Raises:
            CannotRunError: It does not read as that type.
        """
        if kind.startswith("Optional["):
            if value is None or (isinstance(value, str) and value in _NOTHING):
                return None
            return self.read(value, _inner(kind))
        if kind.startswith("List["):
            return [self.read(one, _inner(kind)) for one in _elements(value)]
        if not isinstance(value, str) or kind == "str":
            return value
        return self._word(value.strip(), kind)

    def _word(self, text: str, kind: str) -> Any:
        if kind == "Device":
            return self.device(text)
        try:
            if kind == "bool":
                return {"True": True, "False": False, "true": True, "false": False}[text]
            if kind == "float":
                return float(text)
            if kind in {"number", "Scalar"}:
                return _number(text)
            if kind in {"int", "SymInt"} and text.lstrip("+-").isdigit():
                return int(text)
        except (KeyError, ValueError) as error:
            raise CannotRunError(f"{text!r} does not read as {kind}") from error
        return self._named(text, kind)

    def _named(self, text: str, kind: str) -> Any:
        """A type, layout or memory format; older versions of torch call these ``int`` in their schemas."""
        value = getattr(self.torch, text.rpartition(".")[2], None)
        if isinstance(value, (self.torch.dtype, self.torch.layout, self.torch.memory_format)):
            return value
        if text in {"True", "False"}:
            return text == "True"
        raise CannotRunError(f"{text!r} does not read as {kind}")


def _inner(kind: str) -> str:
    return kind.partition("[")[2][:-1]


def _elements(value: Any) -> Sequence[Any]:
    """A list; one element stands for itself, as ``int[1]`` allows."""
    if isinstance(value, str):
        text = value.strip().strip("[]()")
        return [] if text in _NOTHING else [part.strip() for part in text.split(",") if part.strip()]
    return value if isinstance(value, (list, tuple)) else [value]


def _number(text: str) -> Any:
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return complex(text)


def kind_of(argument: Any) -> str:
    """The type of a schema's argument. ``real_type`` tells a type from an ``int`` (torch 2)."""
    return str(getattr(argument, "real_type", None) or argument.type)


def place_of(bound: Bound, names: Sequence[str]) -> str | None:
    """The schema's name for an argument; ``arg2`` is the third. Null = it has no such argument."""
    if bound.name in names:
        return bound.name
    digits = bound.name[3:]
    if bound.name.startswith("arg") and digits.isdigit() and int(digits) < len(names):
        return names[int(digits)]
    return None


def value_of(bound: Bound, argument: Any, reader: Reader) -> Any:
    """What is passed for an argument.

    Raises:
        CannotRunError: Its text was cut by the log, or does not read.
    """
    kind = kind_of(argument)
    if bound.is_tensor:
        is_list = kind.replace("Optional[", "").startswith("List[")
        return [bound.value] if is_list and not isinstance(bound.value, list) else bound.value
    if bound.text is not None and len(bound.text) >= CUT_AT:
        raise CannotRunError(f"the log cut the value of {bound.name}")
    return reader.read(bound.value if bound.text is None else bound.text, kind)
