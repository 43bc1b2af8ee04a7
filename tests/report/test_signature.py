"""The fingerprint: the same for the same bug, another for another."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import schema
from analyzer.report.signature import family, signature
from tests.report import results


def made(result: schema.Result) -> str:
    found = signature(result)
    assert found is not None
    return found.id


def accused(name: str, source: schema.SourceFrame | None = None, **op: object) -> schema.Result:
    ref = msgspec.structs.replace(results.PAGED, name=name, **op)
    frames = [source] if source else results.paged_suspect().source
    suspect = msgspec.structs.replace(results.paged_suspect(), op=ref, source=frames)
    return msgspec.structs.replace(results.late(), suspects=[suspect])


def test_signature_is_versioned_short_and_stable_over_releases() -> None:
    assert made(results.late()) == "ta1-f55ba65d7262"


@settings(deadline=None)  # a busy machine is no failure
@given(
    pid=st.integers(1, 10**6),
    rank=st.one_of(st.none(), st.integers(0, 999)),
    time_ns=st.one_of(st.none(), st.integers(0, 2**62)),
    shift=st.integers(0, 10**6),
    folder=st.sampled_from(["", "/opt/venv/", "C:\\app\\", "/home/x/y/"]),
    tail=st.integers(0, 2**64 - 1),
    device=st.sampled_from([None, "gpu:0", "gpu:7", "cuda:3"]),
)
def test_signature_knows_no_pid_time_address_rank_prefix_or_line(
    pid: int, rank: int | None, time_ns: int | None, shift: int, folder: str, tail: int, device: str | None
) -> None:
    late = results.late()
    frame = schema.SourceFrame(file=f"{folder}max_steps.py", line=30, function="build")
    symbol = f"custom__paged_lookup_{tail:016x}"
    found = accused(symbol, frame, id=shift, line=6548 + shift, device=device, process=f"pid={pid}")
    fault = results.fault(
        line=6926 + shift,
        last_line=6927 + shift,
        process=f"(Worker rank={rank} pid={pid})",
        rank=rank,
        time_ns=time_ns,
        device=device,
        text=f"an illegal memory access was encountered at 0x{tail:x}",
    )
    assert made(msgspec.structs.replace(found, faults=[fault])) == made(late)


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(min_size=1, max_size=60))
def test_family_takes_any_text_and_is_stable_under_itself(name: str) -> None:
    once = family(name)
    assert family(once) == family(family(once))


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.sampled_from(
        ["custom__paged_lookup", "Epilogue(matmul, silu, operandIndices=[0])", "triton_poi_fused_add"]
    ),
    st.integers(0, 99),
    st.integers(0, 2**64 - 1),
)
def test_family_drops_counters_hashes_and_addresses(name: str, counter: int, tail: int) -> None:
    assert family(f"{name}_{tail:016x}") == name
    assert family(f"{name}_{counter}") == name
    assert family(f"{name} 0x{tail:x}") == name


def test_family_of_a_template_kernel_is_its_function() -> None:
    symbol = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)"
    )
    assert family(symbol) == "at::native::vectorized_elementwise_kernel"
    assert family("__custom__strided_gather") == "custom__strided_gather"


def test_different_suspects_kinds_and_lines_have_different_signatures() -> None:
    line = schema.SourceFrame(file="max_steps.py", line=31, function="build")
    other = msgspec.structs.replace(results.late(), faults=[results.fault(kind="misaligned_address")])
    found = [
        made(results.late()),
        made(accused("custom__strided_gather")),
        made(accused("matmul")),
        made(accused("custom__paged_lookup", line)),
        made(other),
        made(results.undecided()),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("name", "basis"),
    [("late", "suspect"), ("proven", "suspect"), ("undecided", "report"), ("losses", "report")],
)
def test_basis_says_how_much_a_signature_is_worth(name: str, basis: str) -> None:
    found = signature(results.ALL[name])
    assert found is not None
    assert found.basis == basis


def test_exact_report_without_an_op_is_known_by_its_kernel() -> None:
    kernel = results.fault(trust="exact", kernel="_scatter_kernel_0d1d2d")
    found = signature(results.result(faults=[kernel]))
    assert found is not None
    assert (found.basis, found.what) == ("kernel", "scatter_kernel_0d1d2d")


def test_late_kernel_name_is_not_part_of_a_signature() -> None:
    undecided = results.undecided()
    at = schema.ReportedAt(kernel="another_innocent_kernel")
    other = msgspec.structs.replace(undecided, faults=[results.fault(line=16, device=None, reported_at=at)])
    assert made(other) == made(undecided)


def test_no_root_fault_no_signature() -> None:
    assert signature(results.clean()) is None
