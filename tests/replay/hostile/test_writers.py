"""No text of a plan, a log or a dump becomes code of a written program."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import analyzer.replay.repro as writers
from analyzer.replay.executors.call import Bound
from analyzer.replay.executors.user_file import UserFunction
from analyzer.replay.repro.literals import docstring, keywords, plain

_ENDS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\0", "\ud800", "")
_CLOSERS = ("", "'", '"', '"""', "'''", "\\", '\\"', '\\"""', ")", "]", "}", "=1,", '""" ')
_CODE = "open('MARK','w').close()"


def hostile_texts() -> Iterator[str]:
    """Everything that ends a literal or a comment, in front of code, with code that follows it or not."""
    for end, closer in itertools.product(_ENDS, _CLOSERS):
        yield f"aten::embedding{closer}{end}{_CODE}{end}#"
        yield f"{closer}{end};{_CODE};{closer}"
    yield from (f"x={_CODE},y", f"{{{_CODE}}}", f"{{0.__class__}}{_CODE}", f"*[{_CODE}]", f"lambda:{_CODE}")


TEXTS = list(hostile_texts())


def run_in(folder: Path, *programs: str) -> list[int]:
    """Run programs in one child, each by itself; none of them may have made the marker."""
    (folder / "programs.json").write_text(json.dumps(programs))
    runner = (
        "import json\n"
        "for text in json.load(open('programs.json')):\n"
        "    try: exec(compile(text, 'repro.py', 'exec'), {'__file__': 'repro.py'}); print(0)\n"
        "    except SyntaxError: print(2)\n"
        "    except BaseException: print(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", runner], cwd=folder, capture_output=True, text=True, check=True, timeout=300
    )
    assert not (folder / "MARK").exists()
    return [int(line) for line in done.stdout.splitlines() if line in {"0", "1", "2"}]


def test_the_marker_is_made_where_a_text_is_code(tmp_path: Path) -> None:
    """The sandbox sees what it is there to see."""
    with pytest.raises(AssertionError):
        run_in(tmp_path, f"# aten::embedding\n{_CODE}\n#")


def test_all_modules_that_write_programs_are_tried_here() -> None:
    """A new writer fails this until a test feeds it hostile texts."""
    folder = Path(writers.__path__[0])
    found = {path.stem for path in folder.glob("*.py") if ".write_text(" in path.read_text()}
    assert found == {"source", "max_source"}


def test_comments_docstrings_and_arguments_hold_texts_as_texts(tmp_path: Path) -> None:
    programs = [f"# {plain(text)}\nx = 1\n" for text in TEXTS]
    programs += [f"{docstring(f'a {text} b')}\nx = 1\n" for text in TEXTS]
    programs += [f"def f(**k): return k\nassert f({keywords({text: '1'})[0]})\n" for text in TEXTS]
    assert set(run_in(tmp_path, *programs)) == {0}
    for text in TEXTS:
        (expression,) = ast.parse(docstring(text)).body
        assert isinstance(expression, ast.Expr)
        assert ast.literal_eval(expression.value) == "\n".join(map(plain, text.split("\n"))) + "\n"


def any_op(text: str) -> Any:
    return SimpleNamespace(
        name=text,
        call=f"custom::{text}",
        log_id=text,
        line=text,
        step=text,
        source={"file": text, "line": text},
        outputs=[SimpleNamespace(dtype=text, shape=(2,))],
    )


def test_programs_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from analyzer.replay.repro.source import Program
    from analyzer.replay.repro.tensors import Leaf

    programs = []
    for text in TEXTS:
        program = Program(tmp_path / "repro.py", f"{text} fails\n{text}")
        value = torch.zeros(2)
        program.takes(value, Leaf("made", salt="0/1/2"))
        program.begin(any_op(text))
        program.run(torch.ops.aten.add.Tensor, [value, value], {})
        own = UserFunction(_anything, text, text, in_table=True)
        program.run_user(_anything, [value, text, [text]], {text: text, "ok": float("nan")}, own)
        programs.append((tmp_path / "repro.py").read_text(encoding="utf-8"))
        ast.parse(programs[-1])
        program = Program(tmp_path / "repro.py", text)
        program.run_user(_named(text), [], {text: 1})
        programs.append((tmp_path / "repro.py").read_text(encoding="utf-8"))
    stub = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
    assert set(run_in(tmp_path, *(_before_docstring(stub, one) for one in programs))) == {1}


def _before_docstring(stub: str, program: str) -> str:
    """Without torch, which takes a second to import: all statements run up to the first call of it."""
    return program.replace("\nimport torch\n", f"\n{stub}import torch\n", 1)


def _anything(*_: Any, **__: Any) -> None:
    """Takes what it is given."""


def _named(text: str) -> Any:
    def function(**_: Any) -> None:
        """Of any name."""

    function.__name__ = function.__qualname__ = text or "f"
    function.__module__ = text or "m"
    return function


class _Buffer:
    """Of MAX, as far as the writer asks it."""

    shape = (2,)
    num_elements = 2
    dtype = SimpleNamespace(name="int64", size_in_bytes=8)
    device = SimpleNamespace(is_host=True)

    def to(self, _device: Any) -> Any:
        return self

    def to_numpy(self) -> Any:
        return SimpleNamespace(reshape=lambda _: SimpleNamespace(tolist=lambda: [1, 2]))


def test_programs_of_max(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "max", "max.driver"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(CPU=lambda: None))
    write = importlib.import_module("analyzer.replay.repro.max_source").write_max_program
    programs = []
    for text in TEXTS:
        bound = [
            Bound(text, _Buffer(), is_tensor=True),
            Bound(f"{text}2", [text, 1.5, float("inf")]),
            Bound("k", text),
        ]
        write(tmp_path / "repro.py", text, any_op(text), bound, [text])
        programs.append((tmp_path / "repro.py").read_text(encoding="utf-8"))
        ast.parse(programs[-1])
    stub = textwrap.dedent(
        """
        import sys
        from unittest.mock import MagicMock
        for name in ("numpy", "max", "max.driver", "max.dtype", "max.engine", "max.graph"):
            sys.modules[name] = MagicMock()
        """
    )
    run = [
        one.replace("from pathlib import Path\n", f"{stub}from pathlib import Path\n", 1) for one in programs
    ]
    assert 2 not in run_in(tmp_path, *run)


def test_every_writer_is_called_with_all_that_it_takes() -> None:
    """A parameter that is added to a writer has to be fed with hostile texts above."""
    from analyzer.replay.repro.max_source import write_max_program
    from analyzer.replay.repro.source import Program

    taken = list(inspect.signature(write_max_program).parameters)
    assert taken == ["path", "header", "op", "bound", "extensions"]
    assert {name for name in vars(Program) if not name.startswith("_")} == {
        *("begin", "takes", "run", "run_user", "write"),
    }
