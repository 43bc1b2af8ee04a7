"""The dispatch mode that meets each op of PyTorch, below autograd. Runs in the recorded program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

from analyzer.record.ops.describe import Describer, Inputs
from analyzer.record.ops.recorder import Recorder


@cache
def mode_class() -> Any:
    """The mode, to be called with a recorder and what to read; made on first use as its base is torch's."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    hide = _dynamo_skip()

    class OpLogMode(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        """Notes each op and passes it on."""

        supports_higher_order_operators = True

        def __init__(self, recorder: Recorder, inputs: Inputs) -> None:
            super().__init__()
            self._recorder = recorder
            self._describer = Describer(recorder, inputs)

        # Without this, torch.compile would run everything eagerly while we log.
        ignore_compile_internals = classmethod(lambda _: True)
        # Whether the base class has to hide us from Dynamo.
        _should_skip_dynamo = classmethod(lambda _: hide is None)

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            info = self._describer.info(func)
            if not info.launches or FakeTensor in types:  # a compiler traces: nothing is launched
                return func(*args, **kwargs)
            ident = self._recorder.launch(*self._describer.describe(func, info, args, kwargs), depth=2)
            result = func(*args, **kwargs)
            self._recorder.returned(ident)
            return result

    if hide is not None:
        hide(OpLogMode.__torch_dispatch__.__code__)
    return OpLogMode


def _dynamo_skip() -> Callable[[CodeType], None] | None:
    """A function that has Dynamo run a code object, and what it calls, as it is; null = torch has none.

    The base class would do it with a wrapper around each op, which costs a third of our time and imports
    torch._dynamo, which takes seconds, at the first op.
    """
    import torch

    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)  # noqa: SLF001 - no public way
    if not hasattr(frames, "set_code_exec_strategy") or not hasattr(frames, "_FrameExecStrategy"):
        return None
    skip = frames._FrameAction.SKIP  # noqa: SLF001
    return lambda code: frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))  # noqa: SLF001
