"""Python stacks as lines of an op record: ``<last three path parts>:<line>:<function>``, outermost first.

Standard library only: it runs in the recorded program, at every op, so a stack that was seen before costs a
walk over its frames and one look-up.
"""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FrameType

MAX_FRAMES = 64  # innermost ones; recursion has more, and they say nothing new
KNOWN_STACKS = 1 << 14  # a model has some thousand places that launch ops
_PARTS = 3  # of a path (observed.md 2)
_OWN = Path(__file__).resolve().parent
_OWN_FILES = (str(_OWN), str(_OWN.parent / "torch_ops.py"), str(_OWN.parent / "hooks"))
# Between the caller and the kernel, the same at every op.
_PLUMBING = (
    "torch/_ops.py",
    "torch/utils/_device.py",
    "triton/runtime/jit.py",
    "triton/runtime/autotuner.py",
)


class Stacks:
    """Texts of stacks, kept by their code objects and positions."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], bytes] = {}
        self._codes: dict[int, CodeType] = {}  # kept alive: an id of a dead one would be given out again

    def text(self, frame: FrameType | None) -> bytes:
        """The stack that ``frame`` is the innermost of; our own frames are left out."""
        key = []
        at = frame
        while at is not None:
            key.append(id(at.f_code))
            key.append(at.f_lasti)
            at = at.f_back
        found = self._known.get(tuple(key))
        if found is None:
            found = self._render(frame)
            if len(self._known) >= KNOWN_STACKS:
                self._known.clear()
            self._known[tuple(key)] = found
        return found

    def _render(self, frame: FrameType | None) -> bytes:
        lines: list[str] = []
        while frame is not None:
            code = frame.f_code
            self._codes[id(code)] = code
            if len(lines) < MAX_FRAMES and not _is_plumbing(code.co_filename):
                lines.append(f"{short_path(code.co_filename)}:{frame.f_lineno}:{code.co_name}")
            frame = frame.f_back
        return "\n".join(reversed(lines)).encode(errors="replace")


def short_path(path: str) -> str:
    """``/srv/app/models/llm.py`` -> ``app/models/llm.py``, without what would end the path for a reader."""
    parts = path.replace("\\", "/").strip("/").split("/")[-_PARTS:]
    return "/".join(parts).replace(":", "_").replace(";", "_").replace("\n", "_") or "<unknown>"


def _is_plumbing(path: str) -> bool:
    return path.startswith(_OWN_FILES) or path.endswith(_PLUMBING)
