"""Op log of PyTorch in the grammar of MAX's: each op before it is launched, with operands and Python stack.

::

    with analyzer.record.torch_ops("ops.log"):
        model(ids)

Ops are met below autograd, by a dispatch mode: what is logged is what runs. Views and ``detach`` launch
nothing and are left out. Compiled regions (``torch.compile``) show the ops that they call outside of their
own kernels, and Triton kernels that go through Triton's launcher; a CUDA graph shows as its capture and its
replays (``graphs.py``).

Reading values of CUDA tensors waits for the device, which hides races and takes time: it is done for
``inputs="sync"`` only. Imports torch inside functions: the recorder's parent does not have it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from analyzer.record.ops.graphs import watch_graphs
from analyzer.record.ops.inputs import SavedInput, pack_inputs
from analyzer.record.ops.recorder import LogSink, Recorder, Sink, ring_for_process
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.settings import INPUT_BYTES, INPUT_LIMIT, RING_OPS, RING_SUFFIX, TEXT_BYTES
from analyzer.record.ops.signature import Operands, OpInfo, by_name
from analyzer.record.ops.triton import watch_triton

Inputs = Literal["none", "cpu", "sync"]


@contextlib.contextmanager
def torch_ops(
    path: str | os.PathLike[str], *, ring: int = RING_OPS, inputs: Inputs = "cpu", stamps: bool = False
) -> Iterator[None]:
    """Log the PyTorch ops of a block.

    Args:
        path: The op log. Saved inputs go to ``<path>.inputs/``, one ``.safetensors`` file an op.
        ring: Keep the last so many ops, in ``<path>.ring``, and write them to ``path`` at the end of the
            block, also when it raises. After a crash the ring stays, and the next ``torch_ops`` of that path,
            or ``analyzer.record.ops.dump.render_ring``, makes the log of it. 0 = write each op to ``path`` at
            once.
        inputs: Integer and boolean inputs: ``none``; ``cpu`` saves those of CPU tensors up to 64 KB, of
            larger ones the range; ``sync`` those of CUDA tensors too, **which makes every such op wait for
            the device**.
        stamps: Write the log with times, as ``trace-analyze record`` does.

    Raises:
        OSError: The log or the ring cannot be made.
        ImportError: torch is not installed.
    """
    name = os.fspath(path)
    if ring and Path(name + RING_SUFFIX).exists():
        recover(name, stamps=stamps)
    sink: Sink = (
        Ring(name + RING_SUFFIX, ring, TEXT_BYTES, INPUT_BYTES)
        if ring
        else LogSink(name, f"{name}.inputs", stamps=stamps)
    )
    recorder = Recorder(sink)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_watching(recorder, inputs))
            yield
    finally:
        recorder.close()
        if ring:
            _write_log(name, name, stamps=stamps)


def recover(path: str, *, stamps: bool = False) -> str:
    """Make ``<path>.crash`` of the ring that a crashed process left, and remove the ring.

    Returns:
        Path of the log.
    """
    crash = path + ".crash"
    _write_log(path, crash, stamps=stamps)
    return crash


def _write_log(path: str, log: str, *, stamps: bool) -> None:
    from analyzer.record.ops.dump import read_ring, render_events, save_inputs
    from analyzer.record.stamp import stamp_lines

    ring = Path(path + RING_SUFFIX)
    ops = read_ring(ring).ops
    with Path(log).open("wb") as file:
        file.writelines(
            stamp_lines(text + b"\n", time_ns, "stderr") if stamps else text + b"\n"
            for time_ns, text in render_events(ops)
        )
    save_inputs(ops, Path(f"{log}.inputs"))
    ring.unlink()


def install(folder: str, ring: int, inputs: Inputs) -> None:
    """Log all ops of this process, of threads started from now on, and of forked children, to its end.

    What ``trace-analyze record`` puts into the program through ``hooks/sitecustomize.py``.

    Args:
        folder: Gets ``<pid>.ring``.
        ring: Ops that a ring keeps.
        inputs: As in ``torch_ops``.
    """
    recorder = Recorder(ring_for_process(folder, ring))
    mode = _mode_class()
    mode(recorder, inputs).__enter__()
    watch_graphs(recorder)
    watch_triton(recorder)
    os.register_at_fork(after_in_child=lambda: recorder.replace_sink(ring_for_process(folder, ring)))
    _in_new_threads(lambda: mode(recorder, inputs))


@contextlib.contextmanager
def _watching(recorder: Recorder, inputs: Inputs) -> Iterator[None]:
    undo = [watch_graphs(recorder), watch_triton(recorder)]
    try:
        with _mode_class()(recorder, inputs):
            yield
    finally:
        for one in undo:
            one()


def _in_new_threads(make: Callable[[], Any]) -> None:
    """A dispatch mode belongs to its thread; servers run the model in worker threads."""
    start = threading.Thread.start

    def start_with_mode(thread: threading.Thread) -> None:
        run = thread.run

        def run_with_mode() -> None:
            with make():
                run()

        thread.run = run_with_mode  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_with_mode  # type: ignore[method-assign, assignment]


@cache
def _mode_class() -> Any:
    """The dispatch mode; made on first use because its base is torch's."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    strategy = _dynamo_skip()
    operands = Operands(torch.Tensor, torch.strided)
    infos: dict[Any, OpInfo] = {}

    class OpLogMode(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        """Notes each op and passes it on."""

        supports_higher_order_operators = True

        def __init__(self, recorder: Recorder, inputs: Inputs) -> None:
            super().__init__()
            self._recorder = recorder
            self._inputs = inputs

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Without this, ``torch.compile`` would run everything eagerly while we log."""
            return True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Whether the base class has to hide us from Dynamo."""
            return strategy is None

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            info = infos.get(func)
            if info is None:
                info = infos[func] = OpInfo(func)
            if not info.launches or FakeTensor in types:  # a compiler traces: nothing is launched
                return func(*args, **kwargs)
            recorder = self._recorder
            ints: list[Any] = []
            key = (func, *operands.key(args, kwargs, ints))
            text = recorder.texts.get(key)
            if text is None:
                text = recorder.texts[key] = operands.text(info, args, kwargs)
            saved = None
            if ints and self._inputs != "none":
                saved = _saved(
                    operands, info, args, kwargs, self._inputs, capturing=recorder.capture is not None
                )
            ident = recorder.launch(text, saved, depth=2)
            result = func(*args, **kwargs)
            recorder.returned(ident)
            return result

    if strategy is not None:
        strategy(OpLogMode.__torch_dispatch__.__code__)
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


def _saved(
    operands: Operands, info: OpInfo, args: Any, kwargs: Any, inputs: Inputs, *, capturing: bool
) -> bytes | None:
    """The integer inputs of an op; null = none that may be read.

    While a CUDA graph is captured nothing may be read: a copy to the host ends the capture with an error.
    """

    def readable(tensor: Any) -> bool:
        here = tensor.device.type == "cpu" or (inputs == "sync" and not capturing)
        return here and operands.integers.get(tensor.dtype, False) and tensor.device.type != "meta"

    named = by_name(operands, info, args, kwargs, readable)
    found = [_read_values(name, one) for name, one in named if name.partition(".")[0] not in info.written]
    return pack_inputs(info.name, found) if found else None


def _read_values(name: str, tensor: Any) -> SavedInput:
    import torch

    low = high = None
    data = b""
    plain = (
        tensor.layout is torch.strided and type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )
    if plain and tensor.numel():
        values = tensor.detach()
        if values.dtype is not torch.uint16 and values.dtype not in _unordered():
            low, high = (int(one) for one in torch.aminmax(values))
        if values.numel() * values.element_size() <= INPUT_LIMIT:
            data = values.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return SavedInput(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        low=low,
        high=high,
        data=data,
    )


@cache
def _unordered() -> frozenset[Any]:
    """Dtypes that ``aminmax`` does not take."""
    import torch

    names = ("uint16", "uint32", "uint64")
    return frozenset(getattr(torch, name) for name in names if hasattr(torch, name))
