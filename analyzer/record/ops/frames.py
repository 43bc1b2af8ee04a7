"""Python stacks as lines of an op record: ``<last three path parts>:<line>:<function>``, outermost first.

Standard library only: it runs in the recorded program, at every op, so a stack that was seen before costs a
walk over its nearest frames and one look-up.
"""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FrameType

# Innermost ones that are looked at, plumbing included: three to a module's call. Each costs 0.1 us an op, and
# what stands further out (the server's loop) is the same for all ops.
MAX_FRAMES = 16
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
    "triton/knobs.py",
)


class Stacks:
    """Texts of stacks, kept by the code objects and positions of their frames."""

    def __init__(self) -> None:
        # By positions alone, as code objects are slow to hash; to compare the same ones is quick.
        self._known: dict[tuple[int, ...], list[tuple[list[CodeType], bytes]]] = {}

    def text(self, frame: FrameType | None) -> bytes:
        """The stack that ``frame`` is the innermost of; our own frames are left out."""
        codes = []
        places = []
        at = frame
        left = MAX_FRAMES
        while at is not None and left:
            codes.append(at.f_code)
            places.append(at.f_lasti)
            at = at.f_back
            left -= 1
        for known, text in self._known.get(tuple(places), ()):
            if known == codes:
                return text
        return self._learn(frame, codes, tuple(places))

    def _learn(self, frame: FrameType | None, codes: list[CodeType], places: tuple[int, ...]) -> bytes:
        if len(self._known) >= KNOWN_STACKS:
            self._known.clear()
        text = _render(frame)
        self._known.setdefault(places, []).append((codes, text))
        return text


def _render(frame: FrameType | None) -> bytes:
    lines: list[str] = []
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        if not _is_plumbing(code.co_filename):
            lines.append(f"{short_path(code.co_filename)}:{frame.f_lineno}:{code.co_name}")
        frame = frame.f_back
    return "\n".join(reversed(lines)).encode(errors="replace")


def short_path(path: str) -> str:
    """``/srv/app/models/llm.py`` -> ``app/models/llm.py``, without what would end the path for a reader."""
    parts = path.replace("\\", "/").strip("/").split("/")[-_PARTS:]
    return "/".join(parts).replace(":", "_").replace(";", "_").replace("\n", "_") or "<unknown>"


def _is_plumbing(path: str) -> bool:
    return path.startswith(_OWN_FILES) or path.endswith(_PLUMBING)
