"""The values of made inputs, without a framework."""

from __future__ import annotations

import math
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.record.ops.inputs import SavedInput, pack_inputs
from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.worker.dtypes import INTEGERS, decode_integers, encode, size_bytes
from analyzer.replay.worker.inputs import build_values
from analyzer.replay.worker.plan_file import Tensor

HERE = Path()


def _integers(*, valid: bool = False, count: int = 6, dtype: str = "int64", **facts: Any) -> list[int]:
    tensor = Tensor(shape=(count,), dtype=dtype, device="cpu", **facts)
    return decode_integers(dtype, build_values(tensor, valid=valid, salt="s", folder=HERE))


def _floats(*, valid: bool = False, salt: str = "s", **facts: Any) -> list[float]:
    tensor = Tensor(**{"shape": (64,), "dtype": "float32", "device": "cpu", **facts})
    data = build_values(tensor, valid=valid, salt=salt, folder=HERE)
    return [value for (value,) in struct.iter_unpack("<f", data)]


@given(
    count=st.integers(0, 10_000),
    extent=st.none() | st.integers(0, 1 << 40),
    low=st.none() | st.integers(-(1 << 40), 1 << 40),
    high=st.none() | st.integers(-(1 << 40), 1 << 40),
)
def test_indices_of_a_control_are_always_in_range(
    count: int, extent: int | None, low: int | None, high: int | None
) -> None:
    for fidelity in ("made", "statistics"):
        found = _integers(valid=True, count=count, fidelity=fidelity, extent=extent, low=low, high=high)
        assert len(found) == count
        assert all(0 <= one < max(extent or 1, 1) for one in found)


@given(count=st.integers(2, 10_000), extent=st.none() | st.integers(1, 1 << 40))
def test_made_indices_are_valid_and_have_the_first_and_the_last(count: int, extent: int | None) -> None:
    found = _integers(count=count, extent=extent)
    assert (min(found), max(found)) == (0, (extent or 1) - 1)
    assert found == _integers(count=count, extent=extent)


@given(
    count=st.integers(2, 9000),
    low=st.integers(-99, 99),
    over=st.integers(0, 99),
    extent=st.none() | st.just(50),
)
def test_recorded_ends_are_both_there_and_nothing_else_is_out_of_range(
    count: int, low: int, over: int, extent: int | None
) -> None:
    high = low + over
    found = _integers(count=count, fidelity="statistics", low=low, high=high, extent=extent)
    assert {low, high} <= set(found)
    inside = [one for one in found if one not in {low, high}]
    assert all(low <= one <= high for one in inside if extent is None)
    assert extent is None or all(0 <= one < extent for one in inside)


def test_one_element_has_the_end_that_is_out_of_range() -> None:
    assert _integers(count=1, fidelity="statistics", low=-3, high=4, extent=5) == [-3]
    assert _integers(count=1, fidelity="statistics", low=0, high=9, extent=5) == [9]


def test_recorded_values_are_clamped_only_in_the_control() -> None:
    values = (-1, 0, 3, 99, 4, 5)
    assert _integers(fidelity="recorded", values=values, extent=4) == list(values)
    assert _integers(fidelity="recorded", values=values, extent=4, valid=True) == [0, 0, 3, 3, 3, 3]


def test_made_floats_are_small_finite_and_differ_by_input() -> None:
    found = _floats()
    assert found == _floats()
    assert found != _floats(salt="other")
    assert all(abs(one) <= 0.5 for one in found)
    assert len(set(found)) > 60


def test_floats_by_statistics_have_both_ends() -> None:
    found = _floats(fidelity="statistics", low=-2.0, high=6.0)
    assert (min(found), max(found)) == (-2.0, 6.0)
    assert set(_floats(fidelity="statistics", mean=1.5)) == {1.5}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_special_values_are_kept_and_are_zero_in_the_control(dtype: str) -> None:
    tensor = Tensor((4,), dtype, "cpu", fidelity="recorded", values=("nan", "inf", "-inf", 1.0))
    kept = build_values(tensor, valid=False, salt="", folder=HERE)
    assert kept == encode(dtype, [math.nan, math.inf, -math.inf, 1])
    assert build_values(tensor, valid=True, salt="", folder=HERE) == encode(dtype, [0, 0, 0, 1])


def test_booleans_alternate() -> None:
    tensor = Tensor((5,), "bool", "cpu")
    assert build_values(tensor, valid=True, salt="", folder=HERE) == bytes([0, 1, 0, 1, 0])


def test_a_file_of_the_recorder_is_read_back(tmp_path: Path) -> None:
    data = encode("int32", [7, -1])
    saved = [
        SavedInput("index", (2,), "int32", "cpu", -1, 7, data),
        SavedInput("mask", (1,), "bool", "cpu", 0, 1, b"\x01"),
    ]
    (tmp_path / "1.safetensors").write_bytes(pack_inputs("aten::index", saved))
    tensor = Tensor((2,), "int32", "cpu", fidelity="recorded", file="1.safetensors", key="index")
    assert build_values(tensor, valid=False, salt="", folder=tmp_path) == data


@pytest.mark.parametrize(
    ("content", "facts", "message"),
    [
        (b"\x01", {}, "too short"),
        (b"\xff\x00\x00\x00\x00\x00\x00\x00{}", {}, "key|Extra|Expecting|index"),
        (None, {"dtype": "int64"}, "the plan says int64, the file holds int32"),
        (None, {"shape": (3,)}, "have 8 bytes"),
        (None, {"key": None}, "holds 2 tensors"),
        (None, {"key": "gone"}, "gone"),
    ],
)
def test_a_file_that_does_not_fit_the_plan_is_refused(
    tmp_path: Path, content: bytes | None, facts: dict[str, Any], message: str
) -> None:
    pair = [SavedInput(name, (2,), "int32", "cpu", 0, 1, encode("int32", [0, 1])) for name in ("index", "b")]
    (tmp_path / "f.safetensors").write_bytes(pack_inputs("op", pair) if content is None else content)
    given_facts = {"shape": (2,), "dtype": "int32", "key": "index", **facts}
    tensor = Tensor(device="cpu", fidelity="recorded", file="f.safetensors", **given_facts)
    with pytest.raises((ValueError, KeyError), match=message):
        build_values(tensor, valid=False, salt="", folder=tmp_path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    whole = pack_inputs("op", [SavedInput("i", (2,), "int32", "cpu", 0, 1, encode("int32", [0, 1]))])
    (tmp_path / "f.safetensors").write_bytes(whole[:-1])
    tensor = Tensor((2,), "int32", "cpu", fidelity="recorded", file="f.safetensors", key="i")
    with pytest.raises(ValueError, match="cut short"):
        build_values(tensor, valid=False, salt="", folder=tmp_path)


def test_recorded_without_values_and_unknown_types_are_refused() -> None:
    with pytest.raises(ValueError, match="neither a file nor values"):
        _integers(fidelity="recorded")
    with pytest.raises(CannotRunError, match="int4"):
        build_values(Tensor((2,), "int4", "cpu"), valid=False, salt="", folder=HERE)


def test_torch_saved_tensors_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"q": torch.arange(6).view(2, 3).t()}, tmp_path / "a.pt")
    torch.save(torch.tensor([1.5, 2.0], dtype=torch.bfloat16), tmp_path / "b.pt")
    several = Tensor((3, 2), "int64", "cpu", fidelity="recorded", file="a.pt", key="q")
    found = build_values(several, valid=False, salt="", folder=tmp_path)
    assert decode_integers("int64", found) == [0, 3, 1, 4, 2, 5]
    one = Tensor((2,), "bfloat16", "cpu", fidelity="recorded", file="b.pt")
    assert build_values(one, valid=False, salt="", folder=tmp_path) == encode("bfloat16", [1.5, 2.0])


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
     "float8_e5m2fnuz", "float8_e8m0fnu", "bool", "complex64", *INTEGERS],
)  # fmt: skip
def test_elements_are_encoded_as_torch_stores_them(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = [1, 0, 1] if dtype == "bool" else [1, 2, 64] if "8m0" in dtype else [0, 1, 2, 64, 0.5, 1.75]
    if dtype in INTEGERS:
        values = [0, 1, 127, 5]
    data = encode(dtype, values)
    assert len(data) == len(values) * size_bytes(dtype)
    made = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))
    assert [complex(one) for one in made.to(torch.complex64)] == [complex(one) for one in values]


def test_negative_floats_keep_their_sign_in_eight_bits() -> None:
    torch = pytest.importorskip("torch")
    made = torch.frombuffer(bytearray(encode("float8_e4m3fn", [-1.5, -0.25])), dtype=torch.float8_e4m3fn)
    assert made.float().tolist() == [-1.5, -0.25]


def test_a_packed_archive_is_not_unpacked(tmp_path: Path) -> None:
    """``torch.save`` packs nothing: what is packed may be a thousand times as large as it looks."""
    from analyzer.replay.worker.stored import read_stored

    path = tmp_path / "inputs.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inputs/data.pkl", bytes(1 << 22))
    with pytest.raises(ValueError, match=r"torch\.save did not write it: it would become 4194304 bytes"):
        read_stored(path, None, "float32")
    path.write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(ValueError, match=r"torch\.save did not write it"):
        read_stored(path, None, "float32")
