"""Parts of the hook that need no device: kernels launched past the dispatcher, gaps, steps."""

from __future__ import annotations

import os
import types
from pathlib import Path

import pytest

from analyzer.replay.hooks.config import FOREVER, HookConfig
from analyzer.replay.hooks.torch_launches import watch_triton
from analyzer.replay.hooks.watch import Launch, Watch
from analyzer.replay.journal import read_journal


class Kernel:
    """Stands for ``triton.runtime.jit.JITFunction``: named, and run with a grid."""

    def __init__(self) -> None:
        self.__name__ = "moe_align_block_kernel"

    def run(self, *args: object, **_launch: object) -> object:
        if args == ("bad",):
            raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")
        return None


def watched(folder: Path, config: HookConfig) -> tuple[Watch, type[Kernel]]:
    pytest.importorskip("torch")
    kernel = type("JITFunction", (Kernel,), {"run": Kernel.run})
    jit = types.ModuleType("triton.runtime.jit")
    jit.JITFunction = kernel  # type: ignore[attr-defined]
    watch = Watch(config._replace(journal=str(folder / "journal")))
    watch_triton(jit, watch)
    return watch, kernel


def test_a_triton_launch_of_the_window_is_journalled_with_its_name(tmp_path: Path) -> None:
    watch, kernel = watched(tmp_path, HookConfig(ops=(0, FOREVER)))
    kernel().run(1, grid=(1,), warmup=False)
    with pytest.raises(RuntimeError):
        kernel().run("bad", grid=(1,), warmup=False)
    journal = read_journal(Path(watch.config.journal))
    assert [(one.event, one.name) for one in journal.entries] == [
        ("op", "moe_align_block_kernel"),
        ("done", None),
        ("op", "moe_align_block_kernel"),
        ("failed", "moe_align_block_kernel"),
    ]
    assert {one.kind for one in journal.of("op", "failed")} == {"kernel"}
    place = next(journal.of("op")).place
    assert place is not None
    assert Path(place.file) == Path(__file__)


def test_outside_the_window_only_a_failure_is_journalled(tmp_path: Path) -> None:
    watch, kernel = watched(tmp_path, HookConfig())
    kernel().run(1, grid=(1,), warmup=False)
    kernel().run(1, grid=(1,), warmup=True)  # compiles only
    with pytest.raises(RuntimeError):
        kernel().run("bad", grid=(1,), warmup=False)
    journal = read_journal(Path(watch.config.journal))
    assert [one.event for one in journal.entries] == ["failed"]
    (progress,) = journal.progress
    assert (progress.begun, progress.finished) == (2, 1)


def test_an_unannounced_launch_is_blamed_on_the_gap_it_sits_in(tmp_path: Path) -> None:
    watch = Watch(HookConfig(journal=str(tmp_path / "journal"), ops=(0, FOREVER)))
    failures = iter([None, None, RuntimeError("CUDA error: misaligned address")])

    def synchronize() -> None:
        if (error := next(failures)) is not None:
            raise error

    watch.synchronize = synchronize
    for number, name in enumerate(("aten::mm", "aten::relu")):
        launch = Launch(number, name, "op", lambda _values: [], None, lambda: None)
        if number == 0:
            watch.run_loud(launch)
        else:
            with pytest.raises(RuntimeError, match="misaligned"):
                watch.run_loud(launch)
    failed = list(read_journal(tmp_path / "journal").of("failed"))
    assert [(one.kind, one.name) for one in failed] == [("gap", "launch between aten::mm and aten::relu")]


def test_the_window_opens_with_its_first_step_and_closes_after_its_last(tmp_path: Path) -> None:
    watch = Watch(HookConfig(journal=str(tmp_path / "journal"), steps=(1, 2)))
    loud = []
    for _ in range(4):
        watch.enter_step()
        loud.append(watch.is_loud(watch.begin()))
    assert loud == [False, True, True, False]


def test_a_forked_child_counts_for_itself(tmp_path: Path) -> None:
    watch = Watch(HookConfig(journal=str(tmp_path / "journal")))
    watch.begin()
    child = os.fork()
    if child == 0:
        watch.begin()
        watch.finish()
        os._exit(0)
    os.waitpid(child, 0)
    counted = {one.begun for one in read_journal(tmp_path / "journal").progress}
    assert counted == {1}
    assert len(read_journal(tmp_path / "journal").progress) == 2
