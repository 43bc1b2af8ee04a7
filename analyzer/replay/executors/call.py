"""What an executor is given and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from analyzer.replay.worker.plan_file import Op


class CannotRunError(Exception):
    """The op cannot be executed here; the text says why. No fault, and no failure of the op."""


class Bound(NamedTuple):
    """One argument, its tensors made.

    ``value``: a tensor, a list of tensors and nulls, or the plan's own value. ``is_tensor``: one of the first
    two. ``text``: to be read by the op's schema instead of ``value``.
    """

    name: str
    value: Any = None
    is_tensor: bool = False
    text: str | None = None

    def tensors(self) -> list[Any]:
        """The tensors in it."""
        if not self.is_tensor:
            return []
        values = self.value if isinstance(self.value, list) else [self.value]
        return [one for one in values if one is not None]


class Prepared(NamedTuple):
    """An op that is ready. ``call`` launches it and gives its outputs.

    ``repeatable``: launching it again does the same. ``mutates``: it writes into its inputs (null = not
    known).
    """

    call: Callable[[], Any]
    repeatable: bool = True
    mutates: bool | None = None


class Executor(NamedTuple):
    """One way to execute ops. A module of this folder that has an ``EXECUTOR`` is found by itself.

    ``framework``: whose tensors it takes, ``torch`` or ``max``. ``handles`` says whether an op is its own;
    exactly one executor handles an op. ``prepare`` does all that is no launch of the op; it may raise
    ``CannotRunError``.
    """

    framework: str
    handles: Callable[[Op], bool]
    prepare: Callable[[Op, Sequence[Bound], Any], Prepared]


class Framework(Protocol):
    """Tensors and devices of torch or MAX."""

    def make(self, tensor: Any, data: bytes) -> Any:
        """A tensor of the plan with these elements."""

    def fits(self, value: Any, tensor: Any) -> bool:
        """Whether a result can stand for that tensor of the plan."""

    def made_valid(self, value: Any, extent: int | None) -> Any:
        """A result as an input of the control."""

    def flatten(self, result: Any) -> list[Any]:
        """What an op gave, as a list of outputs; null for what is no tensor."""

    def describe(self, values: Sequence[Any], *, with_values: bool) -> list[dict[str, object]]:
        """What the journal says of tensors. ``with_values``: the range of integer ones too."""

    def synchronize(self) -> None:
        """Wait for the devices in use; raises what they report."""

    def timed(self, call: Callable[[], Any], device: str | None) -> tuple[Any, int, bool]:
        """Launch and wait. Gives the result, nanoseconds, and whether a device's clock measured them."""

    def on_device(self) -> bool:
        """Whether an accelerator is in use."""
