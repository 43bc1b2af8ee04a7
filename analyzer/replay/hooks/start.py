# ruff: noqa: TID252  (loaded as `trace_analyze_hooks` where `analyzer` may not be installed)
"""Start of the hook in one process."""

from __future__ import annotations

import atexit
import sys
import threading
from types import TracebackType

from .config import from_environment
from .imports import AfterImport
from .max_calls import watch_calls
from .torch_launches import watch_cuda_kernels, watch_triton
from .torch_ops import watch_torch
from .watch import Watch


def start() -> None:
    """Prepare everything; frameworks are patched only when the program imports them."""
    config = from_environment()
    if config is None:
        return
    watch = Watch(config)
    watch.journal.write("hello", python=sys.version.split()[0], command=sys.orig_argv)
    atexit.register(lambda: watch.journal.write("bye", on_device=watch.on_device()))
    _watch_exceptions(watch)
    sys.meta_path.insert(
        0,
        AfterImport(
            {
                "torch": lambda module: watch_torch(module, watch),
                "torch.cuda._utils": lambda module: watch_cuda_kernels(module, watch),
                "triton.runtime.jit": lambda module: watch_triton(module, watch),
                "max.engine.api": lambda module: watch_calls(module, watch),
            }
        ),
    )


def _watch_exceptions(watch: Watch) -> None:
    """Journal what ends the program or a thread, then let the hooks that were there print it."""
    whole, thread = sys.excepthook, threading.excepthook

    def end_program(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        watch.uncaught(error)
        whole(kind, error, error.__traceback__ or traceback)

    def end_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            watch.uncaught(arguments.exc_value)
        thread(arguments)

    sys.excepthook, threading.excepthook = end_program, end_thread
