"""Tensors of ``torch.save`` read without torch."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.replay.planning.saved_files import read_saved

# As AOTInductor writes it (PyTorch 2.13), without the memo: a tensor of 4 x 8 indices.
ONE_TENSOR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nLongStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x20tQK\x00(K\x04K\x08t(K\x08K\x01t\x89"
    b"ccollections\nOrderedDict\n)RtR."
)


def write(path: Path, pickled: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/data/0", b"\0" * 256)
    return path


def test_a_single_tensor_has_no_name(tmp_path: Path) -> None:
    (found,) = read_saved(write(tmp_path / "a.pt", ONE_TENSOR)).items()
    name, tensor = found
    assert name is None
    assert (tensor.shape, tensor.stride, tensor.dtype, tensor.device) == ((4, 8), (8, 1), "int64", "cpu")


def test_a_name_that_is_no_part_of_a_tensor_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    harmful = b"\x80\x02cos\nmkdir\nX" + len(str(mark)).to_bytes(4, "little") + str(mark).encode() + b"\x85R."
    assert pickle.loads(b"\x80\x02K\x01.") == 1  # noqa: S301  (the form of the pickles here is right)
    assert read_saved(write(tmp_path / "a.pt", harmful)) == {}
    assert not mark.exists()


def test_what_torch_saves_reads_the_same(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    values = {
        "arg_0": torch.zeros(3, 4).t(),
        "weights": torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
        "count": torch.tensor(3),
        "eight": torch.zeros(2, dtype=torch.float8_e4m3fn),
    }
    torch.save(values, tmp_path / "a.pt")
    found = read_saved(tmp_path / "a.pt")
    for name, tensor in values.items():
        one = found[name]
        assert one.shape == tuple(tensor.shape)
        assert one.dtype == str(tensor.dtype).removeprefix("torch.")
        assert one.stride in {None, tuple(tensor.stride())}


def test_a_storage_of_no_type_is_no_tensor(tmp_path: Path) -> None:
    other = ONE_TENSOR.replace(b"LongStorage", b"OddStorage_")
    assert read_saved(write(tmp_path / "a.pt", other)) == {}


def test_a_place_that_the_file_cannot_fill_gets_no_memory(tmp_path: Path) -> None:
    assert read_saved(write(tmp_path / "a.pt", b"\x80\x02K\x01r\xff\xff\xff\xff.")) == {}


@settings(deadline=None)  # it writes files, on machines that are busy
@given(cut=st.integers(0, len(ONE_TENSOR)), put=st.binary(max_size=6))
def test_no_damage_makes_the_reader_fail(
    cut: int, put: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = ONE_TENSOR[:cut] + put + ONE_TENSOR[cut + len(put) :]
    path = write(tmp_path_factory.getbasetemp() / "damaged.pt", damaged)
    assert isinstance(read_saved(path), dict)


def test_a_file_that_is_no_archive_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(io.BytesIO(b"not a zip").getvalue())
    assert read_saved(path) == {}
    assert read_saved(tmp_path / "missing.pt") == {}
