"""Triton kernels in the op log, with grid and arguments where they are known.

The launch hook of Triton (``triton.knobs.runtime``) is called for every launch through Triton's launcher,
with the kernel's name only. Grid and arguments are those of the ``JITFunction.run`` around it; a kernel that
Inductor launches by its own launcher has none, one that its static launcher launches does not call the hook
at all. Runs in the recorded program.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analyzer.record.ops.inputs import SavedInput, pack_inputs
from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.signature import INTEGERS, MAX_VALUE, shape_text


class _Here(threading.local):
    """What this thread is launching: the call of ``run`` around it, ids of launches that are under way."""

    def __init__(self) -> None:
        self.call: tuple[Any, Sequence[Any], Mapping[str, Any]] | None = None
        self.open: list[int] = []


class TritonWatch:
    """The two hooks and the wrapper of ``run``."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._here = _Here()

    def enter(self, metadata: Any) -> None:
        """Triton's launch hook: the kernel is enqueued next."""
        name = str(metadata.get().get("name", "unknown")) if metadata is not None else "unknown"
        call = self._here.call
        pointers = _integers(call)
        saved = self._integers_of(name, pointers)
        ident = self._recorder.launch(kernel_text(name, call), saved, depth=2)
        self._here.open.append(ident)
        self._recorder.writers.wrote(ident, pointers.values())  # it may write whatever it has a pointer to

    def _integers_of(self, name: str, pointers: Mapping[str, Any]) -> bytes | None:
        """The integers that a kernel is given: who wrote them, and their values; null = it is given none."""
        found = [
            SavedInput(
                key,
                tuple(one.shape),
                str(one.dtype).removeprefix("torch."),
                str(one.device),
                None,
                None,
                b"",
                writer,
                self._recorder.copy(one),
            )
            for key, one in pointers.items()
            if (writer := self._recorder.writers.of(one)) is not None  # else it may hold nothing yet
        ]
        return pack_inputs(name, found) if found else None

    def leave(self, metadata: Any) -> None:  # noqa: ARG002 - the hook's signature is Triton's
        """Triton's exit hook: the launch call returned."""
        if self._here.open:
            ident = self._here.open.pop()
            self._recorder.mark(ident, _current_device())
            self._recorder.returned(ident)

    def wrap(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """``JITFunction.run`` that remembers its arguments for the hook inside."""

        def run_noted(function: Any, *args: Any, **kwargs: Any) -> Any:
            outer, self._here.call = self._here.call, (function, args, kwargs)
            depth = len(self._here.open)
            try:
                return run(function, *args, **kwargs)
            finally:
                self._here.call = outer
                del self._here.open[depth:]  # a launch that raised has no exit hook

        return run_noted


def _current_device() -> int:
    """Triton launches on the current device."""
    import torch

    return torch.cuda.current_device() if torch.cuda.is_initialized() else -1


def _bound(call: tuple[Any, Sequence[Any], Mapping[str, Any]]) -> dict[str, Any]:
    """The arguments of a kernel by name."""
    function, args, kwargs = call
    names = getattr(function, "arg_names", None) or [f"arg{index}" for index in range(len(args))]
    bound = dict(zip(names, args))  # noqa: B905 - Python 3.9 has no strict; more names than values is usual
    bound.update({key: value for key, value in kwargs.items() if key not in {"grid", "warmup"}})
    return bound


def _integers(call: tuple[Any, Sequence[Any], Mapping[str, Any]] | None) -> dict[str, Any]:
    """The integer tensors among the arguments of a kernel."""
    if call is None:
        return {}
    return {
        key: value
        for key, value in _bound(call).items()
        if hasattr(value, "data_ptr") and str(getattr(value, "dtype", "")).removeprefix("torch.") in INTEGERS
    }


def kernel_text(name: str, call: tuple[Any, Sequence[Any], Mapping[str, Any]] | None) -> bytes:
    """Name, line end and closing line of a kernel's record; ``call`` null = arguments not known."""
    if call is None:
        return f"{name}\n;target=cuda".encode()
    bound = _bound(call)
    grid = call[2].get("grid")
    if callable(grid):
        grid = _called(grid, bound)
    pairs = [("grid", "x".join(map(str, grid)) if grid else "unknown")]
    device = "cuda"
    for key, value in bound.items():
        if hasattr(value, "data_ptr") and hasattr(value, "shape"):
            device = str(value.device)
            pairs.append((key, shape_text(value.shape, value.dtype)))
        elif isinstance(value, (int, float, str)):
            pairs.append((key, str(value).replace(";", "_").replace("\n", "_")[:MAX_VALUE]))
    details = "".join(f";{key}={value}" for key, value in pairs if value)
    return f"{name}\n;target={device}{details}".encode(errors="replace")


def _called(grid: Callable[[Mapping[str, Any]], Any], bound: Mapping[str, Any]) -> Any:
    """The grid for these arguments; null where it needs what only the autotuner knows."""
    with contextlib.suppress(KeyError, TypeError):
        return grid(bound)
    return None


def watch_triton(recorder: Recorder) -> Callable[[], None]:
    """Log Triton launches, if Triton is installed and has launch hooks.

    Returns:
        A function that undoes it.
    """
    try:
        knobs: Any = importlib.import_module("triton.knobs")
        jit: Any = importlib.import_module("triton.runtime.jit")
    except ImportError:  # not installed, or from before knobs (3.4)
        return lambda: None
    watch = TritonWatch(recorder)
    runtime = knobs.runtime
    undo = [_hook(runtime, "launch_enter_hook", watch.enter), _hook(runtime, "launch_exit_hook", watch.leave)]
    run = jit.JITFunction.run
    jit.JITFunction.run = watch.wrap(run)

    def undo_all() -> None:
        jit.JITFunction.run = run
        for one in undo:
            one()

    return undo_all


def _hook(runtime: Any, name: str, function: Callable[[Any], None]) -> Callable[[], None]:
    """Add to the chain of hooks (3.5 and later), or put in front of the single one."""
    present: Any = getattr(runtime, name, None)
    if hasattr(present, "add"):
        present.add(function)
        return lambda: present.remove(function)

    def both(metadata: Any) -> None:
        function(metadata)
        if present is not None:
            present(metadata)

    setattr(runtime, name, both)
    return lambda: setattr(runtime, name, present)
