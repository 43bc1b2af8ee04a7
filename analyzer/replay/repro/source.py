"""The text of a standalone program: what was called, with its inputs, as Python that a person can read."""

from __future__ import annotations

import keyword
import math
import random
import re
from pathlib import Path
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.user_file import UserFunction
from analyzer.replay.repro.literals import docstring, is_name, keywords, plain
from analyzer.replay.repro.tensors import Leaf, all_functions, functions_for, write_tensor

_NAME = re.compile(r"\W+", re.ASCII)
# Names that a written program has for other things.
_TAKEN = (
    *("torch", "math", "random", "importlib", "Path", "user_ops", "load", "stored", "made", "between"),
    *("repeated", "print", "float", "getattr", "True", "False", "None"),
)
_LOAD = 'stored = torch.load(Path(__file__).with_suffix(".pt"), weights_only=True)\n'
_LOAD_USER = '''
def load(file):
    """The user's functions."""
    spec = importlib.util.spec_from_file_location("user_ops", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
'''


class Program:
    """Grows with each call, and is written before it.

    Args:
        path: The program; inputs that are too large for it go to the same name with ``.pt``.
        header: What it is, for its first lines.
    """

    def __init__(self, path: Path, header: str) -> None:
        import torch

        self._torch = torch
        self._path = path
        self._header = header
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._leaves: dict[int, Leaf] = {}
        self._kept: list[Any] = []  # what has a name stays, so that no other gets its id
        self._stored: dict[str, Any] = {}
        self._imports: set[str] = set()
        self._used: set[str] = set(_TAKEN)
        self._uses_device = False
        self._user_file: str | None = None
        self._functions = _functions(torch)

    def begin(self, op: Any) -> None:
        """An op of the plan is next."""
        where = [
            f"{word} {value}" for word, value in (("id", op.log_id), ("line", op.line)) if value is not None
        ]
        source = op.source or {}
        place = [f"made at {source['file']}:{source['line']}"] if source else []
        step = [f"step {op.step}"] if op.step is not None else []
        self._lines.append(f"\n# {plain(', '.join([op.name, *step, *where, *place]))}")

    def takes(self, value: Any, leaf: Leaf) -> None:
        """A tensor that the replay made or got from an earlier op."""
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, self._torch.Tensor) and id(one) not in self._names:
                self._kept.append(one)
                self._leaves[id(one)] = leaf

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Write the call of an op of torch's dispatcher, execute it, name its results."""
        schema = func._schema  # noqa: SLF001  (what torch's own tools read)
        names = [one.name for one in schema.arguments if not one.kwarg_only]
        given = _without_defaults(schema, list(args))
        texts = [self._text(one, name) for one, name in zip(given, names)]  # noqa: B905  (Python 3.9)
        texts += [f"{name}={self._text(one, name)}" for name, one in kwargs.items()]
        word = schema.name.rpartition("::")[2].partition(".")[0]
        return self._written(word, f"torch.ops.{func}({', '.join(texts)})", func, args, kwargs)

    def run_user(self, func: Any, args: Any, kwargs: Any, own: UserFunction | None = None) -> Any:
        """Write the call of a function of the user's or of FlashInfer, execute it, name its results.

        Args:
            func: The function.
            args: Its arguments.
            kwargs: The same by name.
            own: Where the user's file has it; null = it is FlashInfer's.
        """
        texts = [self._text(one, f"arg{place}") for place, one in enumerate(args)]
        texts += keywords({name: self._text(one, name) for name, one in kwargs.items()})
        word = getattr(func, "__name__", "function")
        if own is None:
            self._imports.add("importlib")
            called = f"getattr(importlib.import_module({func.__module__!a}), {word!a})"
        else:
            self._user_file = own.file
            is_plain = not own.in_table and is_name(own.name)
            called = f"user_ops.{own.name}" if is_plain else f"user_ops.OPS[{own.name!a}]"
        return self._written(word, f"{called}({', '.join(texts)})", func, args, kwargs)

    def _written(self, word: str, text: str, func: Any, args: Any, kwargs: Any) -> Any:
        name = self._new_name(f"{word.strip('_')}_result")
        self._lines.append(f"{name} = {text}")
        if self._uses_device:
            self._lines.append("torch.cuda.synchronize()  # a fault of the device is met here, if not above")
        self.write()
        result = func(*args, **kwargs)
        if isinstance(result, self._torch.Tensor):
            self._bind(result, name)
        elif isinstance(result, (list, tuple)):
            for place, one in enumerate(result):
                self._bind(one, f"{name}[{place}]")
        return result

    def write(self) -> None:
        """Write program and stored inputs as they are now."""
        if self._stored:
            self._torch.save(self._stored, self._path.with_suffix(".pt"))
        self._path.write_text(self._whole(), encoding="utf-8")

    def _whole(self) -> str:
        body = "\n".join(self._lines)
        functions = functions_for(body)
        imports = sorted(self._imports | ({"importlib.util"} if self._user_file else set()))
        imports += ["math", "random"] if functions else []
        loading = "from pathlib import Path\n" if self._stored else ""
        head = "".join(f"import {name}\n" for name in imports) + loading
        user = f"{_LOAD_USER}\n\nuser_ops = load({self._user_file!a})\n" if self._user_file else ""
        load = f"\n{_LOAD}" if self._stored else ""
        blank = "\n" if head else ""
        spaced = "\n" if functions or user else ""
        return (
            f"{docstring(self._header)}\n\n{head}{blank}import torch\n{spaced}{functions}{user}{spaced}{load}"
            f'{body}\n\nprint("every op ran through: nothing failed")\n'
        )

    def _text(self, value: Any, name: str) -> str:
        torch = self._torch
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._text(one, f'{name}_{place}') for place, one in enumerate(value))}]"
        if isinstance(value, torch.device):
            return f"torch.device({str(value)!r})"
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if value is not None and not isinstance(value, (bool, int, float, complex, str)):
            raise CannotRunError(f"{name} is a {type(value).__name__}, which no program can be written with")
        return ascii(value)

    def _tensor(self, value: Any, name: str) -> str:
        """The name of a tensor; one that has none yet is written first."""
        if id(value) in self._names:
            return self._names[id(value)]
        self._uses_device |= value.device.type == "cuda"
        leaf = self._leaves.get(id(value), Leaf("constant"))
        own = self._new_name(name)
        stored = write_tensor(self._torch, value, leaf, self._functions)
        text = stored.text
        if text is None:
            self._stored[own] = value.detach().cpu() if value.device.type != "cpu" else value.detach().clone()
            moved = f".to({str(value.device)!r})" if value.device.type != "cpu" else ""
            text = f"stored[{own!r}]{moved}"
        self._lines.append(
            f"{own} = {text}  # {stored.note}" if "\n" not in text else f"# {stored.note}\n{own} = {text}"
        )
        self._bind(value, own)
        return own

    def _bind(self, value: Any, name: str) -> None:
        if isinstance(value, self._torch.Tensor) and id(value) not in self._names:
            self._names[id(value)] = name
            self._kept.append(value)

    def _new_name(self, wanted: str) -> str:
        base = _NAME.sub("_", wanted).strip("_") or "value"
        base = f"{base}_" if base in {"self", "input"} or keyword.iskeyword(base) else base
        base = f"value_{base}" if base[0].isdecimal() else base
        name, count = base, 1
        while name in self._used:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return name


def _functions(torch: Any) -> dict[str, Any]:
    """The functions of the written program, to check its expressions with."""
    found: dict[str, Any] = {"torch": torch, "math": math, "random": random}
    exec(all_functions(), found)  # noqa: S102  (a text of ours)
    return found


def _without_defaults(schema: Any, args: list[Any]) -> list[Any]:
    """Leave out what says the default anyway."""
    expected = [one for one in schema.arguments if not one.kwarg_only]
    while args and len(args) <= len(expected) and expected[len(args) - 1].has_default_value():
        default = expected[len(args) - 1].default_value
        if type(default) is not type(args[-1]) or default != args[-1]:
            break
        args.pop()
    return args
