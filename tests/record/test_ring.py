"""The ring file: bounded, readable at any moment, and honest about what is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError
from analyzer.record.ops.dump import is_ring, read_ring, render_ring
from analyzer.record.ops.inputs import SavedInput, evidence, pack_inputs
from analyzer.record.ops.ring import HEADER_BYTES, SLOT, Ring


def filled(path: Path, count: int, *, slots: int = 8, text_bytes: int = 4096) -> Ring:
    ring = Ring(str(path), slots, text_bytes, 1024)
    for n in range(count):
        ring.launch(n, f"aten::op{n}\n;target=cpu;self={n}x2xfloat32".encode(), b"a/b.py:1:f", None)
        ring.returned(n)
    return ring


def test_the_last_ops_are_kept_in_order(tmp_path: Path) -> None:
    filled(tmp_path / "1.ring", 100)
    dump = read_ring(tmp_path / "1.ring")
    assert [op.id for op in dump.ops] == list(range(92, 100))
    assert [op.name for op in dump.ops] == [f"aten::op{n}" for n in range(92, 100)]
    assert all(op.done_ns is not None and op.done_ns >= op.launch_ns for op in dump.ops)


@given(st.integers(1, 300), st.integers(1, 40))
def test_texts_of_ops_in_the_ring_are_theirs_or_said_to_be_gone(
    tmp_path_factory: pytest.TempPathFactory, count: int, slots: int
) -> None:
    path = tmp_path_factory.mktemp("ring") / "1.ring"
    filled(path, count, slots=slots, text_bytes=1024)
    ops = read_ring(path).ops
    assert len(ops) == min(count, slots)
    for op in ops:
        assert op.name in {f"aten::op{op.id}", "op"}
        assert op.frames in (["a/b.py:1:f"], [])
    assert ops[-1].name == f"aten::op{count - 1}"


def test_a_text_that_recurs_for_ever_stays(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "1.ring"), 4, 2048, 0)
    for n in range(1000):
        ring.launch(n, b"aten::mm\n;target=cpu" if n % 2 else b"aten::x%d\n;target=cpu" % n, b"", None)
    assert [op.name for op in read_ring(tmp_path / "1.ring").ops][1::2] == ["aten::mm", "aten::mm"]


def test_an_op_that_has_not_returned_has_no_completion(tmp_path: Path) -> None:
    ring = filled(tmp_path / "1.ring", 2)
    ring.launch(2, b"aten::embedding\n;target=cpu", b"app/serve.py:7:forward", None)
    text = render_ring(tmp_path / "1.ring").decode()
    assert text.endswith("[OP] LAUNCH aten::embedding [id=2] \napp/serve.py:7:forward\n;target=cpu\n")


def test_an_op_without_frames_is_one_line(tmp_path: Path) -> None:
    Ring(str(tmp_path / "1.ring"), 4, 1024, 0).launch(0, b"k\n;target=cuda:0;n=4", b"", None)
    assert render_ring(tmp_path / "1.ring") == b"[OP] LAUNCH k [id=0] target=cuda:0;n=4\n"


def test_saved_inputs_give_their_ranges_as_evidence(tmp_path: Path) -> None:
    index = SavedInput("index", (3,), "int64", "cpu", -1, 40, bytes(24))
    blob = pack_inputs("aten::gather", [index])
    assert evidence(blob) == ";index.min=-1;index.max=40"
    Ring(str(tmp_path / "1.ring"), 4, 1024, 4096).launch(0, b"aten::gather\n;target=cpu", b"", blob)
    assert render_ring(tmp_path / "1.ring").endswith(b"target=cpu;index.min=-1;index.max=40\n")


def test_a_half_written_slot_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "1.ring"
    filled(path, 3).close()
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + SLOT.size] ^= 0xFF  # first word of the second slot
    path.write_bytes(data)
    assert [op.id for op in read_ring(path).ops] == [0, 2]


@pytest.mark.parametrize("content", [b"", b"TAOPRING", b"x" * 500])
def test_what_is_no_ring_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1.ring"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_ring(path)
    assert is_ring(content) == content.startswith(b"TAOPRING")
