"""The dispatch mode that meets each op of PyTorch, below autograd. Runs in the recorded program."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from analyzer.record.ops.describe import Describer, Inputs
from analyzer.record.ops.recorder import Recorder


def mode_class(recorder: Recorder, inputs: Inputs) -> Any:
    """The mode of one recorder: a class without arguments, as each thread needs an object of its own.

    The class is made here as its base is torch's. It is a closure and no object with attributes, and views
    (two of three calls of a decoder) leave it by the second line, because it runs at every op.
    """
    from torch._ops import OpOverload
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    describer = Describer(recorder, inputs)
    describe, gave, launch = describer.describe, describer.gave, recorder.launch
    # By id(func), which is quicker than its hash: what to call, and its info; null = it launches nothing.
    known: dict[int, tuple[Any, Any]] = {}
    alive = []  # an id of a dead function would be given out again

    def learn(func: Any) -> tuple[Any, Any]:
        info = describer.info(func)
        call = func._op if type(func) is OpOverload else func  # noqa: SLF001 - all that its __call__ does
        alive.append(func)
        known[id(func)] = found = (call, info if info.launches else None)
        return found

    def dispatch(_mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call, info = known.get(id(func)) or learn(func)
        if info is None or (types and FakeTensor in types):  # fake: a compiler traces, nothing is launched
            return call(*args, **kwargs) if kwargs else call(*args)
        op, saved = describe(info, args, kwargs)
        ident = launch(op.text, saved, 2)
        result = call(*args, **kwargs) if kwargs else call(*args)
        if op.device >= 0:
            recorder.mark(ident, op.device)
        recorder.returned(ident)
        if op.gives is not False:
            gave(op, ident, result)
        return result

    hide = _dynamo_skip()
    if hide is not None:
        hide(dispatch.__code__)
    members = {
        "__torch_dispatch__": dispatch,
        "__doc__": "Notes each op and passes it on.",
        "supports_higher_order_operators": True,
        # Without this, torch.compile would run everything eagerly while we log.
        "ignore_compile_internals": classmethod(lambda _: True),
        # Whether the base class has to hide us from Dynamo.
        "_should_skip_dynamo": classmethod(lambda _: hide is None),
    }
    return type("OpLogMode", (TorchDispatchMode,), members)


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
