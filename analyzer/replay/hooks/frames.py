"""Which Python line of the user's is running: the innermost frame outside the frameworks."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType

_HERE = str(Path(__file__).resolve().parent)
_FRAMEWORKS = ("torch", "triton", "max", "numpy", "torchvision", "functorch")
Place = list[object]  # [file, line, function, source text or null], as the journal holds it


@lru_cache(maxsize=1)
def _foreign_folders() -> tuple[str, ...]:
    """Folders whose frames are never the user's: this hook, the standard library, the frameworks."""
    paths = sysconfig.get_paths()
    folders = [_HERE, *(paths[name] for name in ("stdlib", "platstdlib"))]
    for name in _FRAMEWORKS:
        spec = importlib.util.find_spec(name) if name in sys.modules else None
        folders.extend(spec.submodule_search_locations or () if spec else ())
    return tuple(f"{folder}/" for folder in folders)


@lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Whether a code object's file is the user's. Packages in site-packages are, unless a framework."""
    if file.startswith("<"):
        return False
    if "/site-packages/" in file or "/dist-packages/" in file:
        return not any(f"-packages/{name}/" in file for name in _FRAMEWORKS) and not file.startswith(_HERE)
    return not file.startswith(_foreign_folders())


def _place(file: str, line: int, function: str) -> Place:
    return [file, line, function, linecache.getline(file, line).strip() or None]


def user_place() -> Place | None:
    """The place in the user's code that is running now; null = no frame of the user's is on the stack."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (the only way without building a stack)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return _place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def raised_place(traceback: TracebackType | None) -> Place | None:
    """The innermost place of the user's in a traceback."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_user_file(code.co_filename):
            found = _place(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return found


def without_hook_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be without this hook."""
    if traceback is None:
        return None
    rest = without_hook_frames(traceback.tb_next)
    if traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        return rest
    traceback.tb_next = rest
    return traceback
