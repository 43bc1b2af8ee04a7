"""Marks of the device, against a driver of our own: what it finished is known after any end."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.record.ops import marks as marks_module
from analyzer.record.ops.copied import with_copied
from analyzer.record.ops.dump import read_ring, render_marks
from analyzer.record.ops.inputs import SavedInput, evidence, pack_inputs
from analyzer.record.ops.marks import DeviceMarks
from analyzer.record.ops.marks_file import Marks, path_of, read_marks, remove_marks
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.values import Copied


class Driver:
    """Executes writes and copies of each stream in order, as far as ``run`` lets it."""

    def __init__(self) -> None:
        self.queues: dict[int, list[Callable[[], None]]] = {}
        self.refuse: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> int:
            if (code := self.refuse.get(name, 0)) != 0:
                return code
            if name == "cuMemHostGetDevicePointer_v2":
                args[0]._obj.value = args[1].value
            elif name == "cuStreamWriteValue32_v2":
                stream, pointer, value, _ = args
                self._later(stream, lambda: ctypes.memmove(pointer, struct.pack("<I", value), 4))
            elif name == "cuMemcpyDtoHAsync_v2":
                to, source, size, stream = args
                self._later(stream, lambda: ctypes.memmove(to, source, size))
            return 0

        if not name.startswith("cu"):
            raise AttributeError(name)
        return call

    def _later(self, stream: int, work: Callable[[], Any]) -> None:
        self.queues.setdefault(stream, []).append(work)

    def run(self, stream: int, works: int | None = None) -> None:
        """Let a stream do its next works, null = all."""
        queue = self.queues.get(stream, [])
        for work in queue[:works]:
            work()
        del queue[:works]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(marks_module, "load_driver", lambda _name: found)
    monkeypatch.setattr(marks_module, "driver_api", lambda: marks_module.CUDA)
    return found


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "1.ring"
    yield path
    remove_marks(path)


class Streams(DeviceMarks):
    """Marks of a process whose current stream is set by the test."""

    now = 1

    def _stream(self, device: int) -> int:  # noqa: ARG002 - one device
        return self.now

    def _current(self) -> int:
        return 0


def done(ring: Path) -> list[tuple[int, int]]:
    """Finished and enqueued marks of each stream."""
    found = read_marks(ring)
    assert found is not None
    return [(one.done, one.last) for one in found.streams]


def test_a_mark_counts_once_the_device_came_to_it(driver: Driver, ring: Path) -> None:
    marks = Streams(str(ring))
    for _ in range(5):
        marks.mark(0)
    assert done(ring) == [(0, 5)]
    driver.run(1, 3)
    assert done(ring) == [(3, 5)]


def test_each_stream_and_each_capture_has_a_slot_of_its_own(driver: Driver, ring: Path) -> None:
    """Streams stop where they are (observed.md 39); a graph's nodes fire at each replay (38)."""
    marks = Streams(str(ring))
    marks.mark(0)
    marks.now = 2
    marks.mark(0)
    marks.mark(0, "graph0")
    driver.run(2)
    found = read_marks(ring)
    assert found is not None
    assert [(one.stream, one.handle, one.graph, one.done) for one in found.streams] == [
        (0, 1, "", 0),
        (1, 2, "", 2),
        (2, 2, "graph0", 3),
    ]


def test_marks_outlive_a_killed_process(driver: Driver, ring: Path) -> None:
    child = os.fork()
    if not child:
        marks = Streams(str(ring))
        for _ in range(4):
            marks.mark(0)
        driver.run(1, 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert done(ring) == [(2, 4)]


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("cuMemHostRegister_v2", 801, "the driver refused to map the marks, with code 801"),
        ("cuStreamWriteValue32_v2", 801, "cuStreamWriteValue32 was refused with code 801"),
    ],
)
def test_a_driver_that_refuses_is_told_once(
    driver: Driver, ring: Path, name: str, code: int, told: str
) -> None:
    driver.refuse[name] = code
    marks = Streams(str(ring))
    assert [marks.mark(0) for _ in range(3)] == [0, 0, 0]
    found = read_marks(ring)
    assert found is not None
    assert found.why_not == told


def test_a_lost_context_leaves_the_marks_as_they_are(driver: Driver, ring: Path) -> None:
    marks = Streams(str(ring))
    marks.mark(0)
    driver.run(1)
    driver.refuse["cuStreamWriteValue32_v2"] = 700
    assert marks.mark(0) == 0
    found = read_marks(ring)
    assert found is not None
    assert (found.why_not, done(ring)) == ("", [(1, 1)])


def test_the_default_stream_of_another_device_is_not_marked(driver: Driver, ring: Path) -> None:
    """Handle 0 means the default stream of the current device."""
    marks = Streams(str(ring))
    marks.now = 0
    assert marks.mark(1) == 0
    assert marks.mark(0) != 0


def marked_ring(ring: Path, marks: DeviceMarks, ops: int) -> None:
    """Ops of one stream, each with its mark."""
    writer = Ring(str(ring), slots=16, text_bytes=4096, input_bytes=4096)
    for ident in range(ops):
        writer.launch(ident, b"aten::op%d\n;target=cuda:0" % ident, b"", None)
        writer.marked(ident, marks.mark(0))
        writer.returned(ident)
    writer.close()


def test_the_log_tells_the_last_op_that_each_stream_finished(driver: Driver, ring: Path) -> None:
    marked_ring(ring, Streams(str(ring)), 5)
    driver.run(1, 3)
    assert list(render_marks(read_ring(ring))) == [
        "[RECORD] DONE stream=0 device=cuda:0 id=2 op=aten::op2 left=3-4"
    ]


def test_an_op_inside_another_does_not_clear_it(driver: Driver, ring: Path) -> None:
    """The inner launch is marked first; where its mark is there and the outer one's is not, both can be."""
    marks = Streams(str(ring))
    writer = Ring(str(ring), slots=16, text_bytes=4096, input_bytes=4096)
    for ident in range(3):
        writer.launch(ident, b"op%d\n;target=cuda:0" % ident, b"", None)
    for ident in (0, 2, 1):  # op 2 is launched by op 1
        writer.marked(ident, marks.mark(0))
    writer.close()
    driver.run(1, 2)
    assert list(render_marks(read_ring(ring))) == ["[RECORD] DONE stream=0 device=cuda:0 id=0 op=op0 left=1"]


def test_values_are_believed_once_the_mark_behind_them_is_there(driver: Driver, ring: Path) -> None:
    marks = Streams(str(ring))
    values = (ctypes.c_int64 * 3)(5, 307, 0)
    place = marks.reserve(24, 0, None)
    assert place is not None
    assert marks.copy(ctypes.addressof(values), 24, place, 0)
    mark = marks.mark(0)
    copied = Copied(place, 24, whole=True, stream=(mark & 0xFFFF) - 1, number=mark >> 16)
    saved = SavedInput("indices", (3,), "int64", "cuda:0", None, None, b"", None, copied.text())
    blob = pack_inputs("aten::embedding", [saved])
    assert evidence(with_copied(blob, read_marks(ring))) == ""
    driver.run(1)
    found = with_copied(blob, read_marks(ring))
    assert evidence(found) == ";indices.min=0;indices.max=307"
    assert found.endswith(bytes(values))


def test_values_that_were_overwritten_are_not_believed() -> None:
    arena = bytes(4 << 20)
    assert Marks(1, "", (), head=8, arena=arena).values(0, 8) == bytes(8)
    assert Marks(1, "", (), head=(3 << 20) + 8, arena=arena).values(0, 8) is None


def test_a_broken_file_gives_no_marks(ring: Path) -> None:
    path_of(ring).write_bytes(b"TAOPMARK" + bytes(100))
    assert read_marks(ring) is None
