"""CUDA graphs in the op log: the capture, and each replay, as ops of their own.

While a graph is captured its ops are only written down by the driver; they run at each replay, together. The
ops of the capture carry ``capture=<graph>``, a replay names that graph: a fault at ``cuda_graph_replay`` is
one of theirs. Runs in the recorded program.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from analyzer.record.ops.recorder import Recorder

_NAME = "_trace_analyze_name"


def watch_graphs(recorder: Recorder, graph_class: Any = None) -> Callable[[], None]:
    """Log captures and replays.

    Args:
        recorder: Gets the ops, and ``capture`` while one is under way.
        graph_class: ``torch.cuda.CUDAGraph``, or a stand-in for it.

    Returns:
        A function that undoes it.
    """
    if graph_class is None:
        import torch

        graph_class = torch.cuda.CUDAGraph
    begin, end, replay = graph_class.capture_begin, graph_class.capture_end, graph_class.replay
    numbers = itertools.count()

    def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
        name = f"graph{next(numbers)}"
        setattr(graph, _NAME, name)
        ident = recorder.launch(_text("cuda_graph_capture", name), depth=2)
        result = begin(graph, *args, **kwargs)
        recorder.returned(ident)
        recorder.capture = name
        recorder.mark(ident, _index())  # the first node: each replay says that it has begun
        return result

    def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.capture = None
        return end(graph, *args, **kwargs)

    def replay_logged(graph: Any, *args: Any, **kwargs: Any) -> Any:
        ident = recorder.launch(_text("cuda_graph_replay", getattr(graph, _NAME, "unknown")), depth=2)
        result = replay(graph, *args, **kwargs)
        recorder.mark(ident, _index())
        recorder.returned(ident)
        return result

    return _put_in(graph_class, capture_begin, capture_end, replay_logged)


def _put_in(graph_class: Any, *methods: Callable[..., Any]) -> Callable[[], None]:
    names = ("capture_begin", "capture_end", "replay")
    before = [getattr(graph_class, name) for name in names]
    for name, method in zip(names, methods):  # noqa: B905 - Python 3.9 has no strict
        setattr(graph_class, name, method)

    def undo() -> None:
        for name, method in zip(names, before):  # noqa: B905
            setattr(graph_class, name, method)

    return undo


def _text(name: str, graph: str) -> bytes:
    return f"{name}\n;target={_device()};graph={graph}".encode()


def _device() -> str:
    return f"cuda:{index}" if (index := _index()) >= 0 else "cuda"


def _index() -> int:
    import torch

    return torch.cuda.current_device() if torch.cuda.is_available() else -1
