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
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from analyzer.record.ops.cuda_kernels import watch_cuda_kernels
from analyzer.record.ops.describe import Inputs
from analyzer.record.ops.graphs import watch_graphs
from analyzer.record.ops.marks_file import remove_marks
from analyzer.record.ops.mode import mode_class
from analyzer.record.ops.recorder import LogSink, Recorder, Sink, ring_for_process, ring_or_nowhere
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.settings import INPUT_BYTES, RING_OPS, RING_SUFFIX, TEXT_BYTES
from analyzer.record.ops.steps import watch_steps
from analyzer.record.ops.triton import watch_triton


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

    Where an earlier crash has that name, ``<path>.crash.2`` and so on.

    Returns:
        Path of the log.
    """
    crash, count = path + ".crash", 1
    while os.path.lexists(crash):
        count += 1
        crash = f"{path}.crash.{count}"
    _write_log(path, crash, stamps=stamps)
    return crash


def _write_log(path: str, log: str, *, stamps: bool) -> None:
    from analyzer.record.ops.dump import read_ring, render_events, render_marks, save_inputs
    from analyzer.record.stamp import stamp_lines

    ring = Path(path + RING_SUFFIX)
    dump = read_ring(ring)
    ops = dump.ops
    with Path(log).open("wb") as file:
        file.writelines(
            stamp_lines(text + b"\n", time_ns, "stderr") if stamps else text + b"\n"
            for time_ns, text in render_events(ops)
        )
        now_ns = time.time_ns()
        for line in render_marks(dump):
            text = f"{line}\n".encode()
            file.write(stamp_lines(text, now_ns, "stderr") if stamps else text)
    save_inputs(ops, Path(f"{log}.inputs"))
    ring.unlink()
    remove_marks(ring)


def install(folder: str, ring: int, inputs: Inputs) -> None:
    """Log all ops of this process, of threads started from now on, and of forked children, to its end.

    What ``trace-analyze record`` puts into the program through ``hooks/sitecustomize.py``.

    Args:
        folder: Gets ``<pid>.ring``.
        ring: Ops that a ring keeps.
        inputs: As in ``torch_ops``.
    """
    recorder = Recorder(ring_for_process(folder, ring))
    mode = mode_class(recorder, inputs)
    mode().__enter__()
    _watch(recorder)
    os.register_at_fork(after_in_child=lambda: recorder.replace_sink(ring_or_nowhere(folder, ring)))
    _in_new_threads(mode)


def _watch(recorder: Recorder) -> list[Callable[[], None]]:
    """Meet what no dispatch mode sees; the functions undo it."""
    watches = (watch_steps, watch_graphs, watch_triton, watch_cuda_kernels)
    return [watch(recorder) for watch in watches]


@contextlib.contextmanager
def _watching(recorder: Recorder, inputs: Inputs) -> Iterator[None]:
    undo = _watch(recorder)
    try:
        with mode_class(recorder, inputs)():
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
