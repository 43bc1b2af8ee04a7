"""What the parent tells the hook, and what both sides agree on."""

from __future__ import annotations

import json
import os
from typing import NamedTuple, Optional, Tuple  # noqa: UP035  (evaluated on the program's Python, 3.9 or newer)

VARIABLE = "TRACE_ANALYZE_HOOK"  # one variable with everything; absent = the hook does nothing
EXIT_STOPPED = 97  # the hook ended the run on purpose; no shell, signal or common tool uses it
FOREVER = 1 << 62


class HookConfig(NamedTuple):
    """What to watch.

    ``journal``: file that gets one line an event. ``steps``: first and last step of the window, inclusive.
    ``ops``: first and last op number of the window. Neither: no window, ops are only counted.
    ``stop_after_step``: end the run cleanly once that step is sound. ``stop_before_step``,
    ``stop_before_op``: end it just before, for a control. ``sync_calls``: synchronise after each MAX
    ``execute()``. ``marker``: what makes a step of a PyTorch program ("module": a call of the outermost
    module; "none": nothing does).
    """

    journal: str = ""
    steps: Optional[Tuple[int, int]] = None  # noqa: UP006, UP045  (see the import)
    ops: Optional[Tuple[int, int]] = None  # noqa: UP006, UP045
    stop_after_step: Optional[int] = None  # noqa: UP045
    stop_before_step: Optional[int] = None  # noqa: UP045
    stop_before_op: Optional[int] = None  # noqa: UP045
    sync_calls: bool = False
    marker: str = "module"

    def dump(self) -> str:
        """The text for ``VARIABLE``."""
        return json.dumps(self._asdict())


def from_environment() -> HookConfig | None:
    """The configuration of this process; null = not a replay."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    values = json.loads(text)
    for name in ("steps", "ops"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    return HookConfig(**values)
