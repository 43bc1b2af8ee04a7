"""compute-sanitizer and cuda-memcheck (formats.md 3.18, observed.md 26)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.schema import SourceFrame
from analyzer.witnesses.sanitizer import WITNESS
from analyzer.witnesses.symbols import base_name, without_parameters
from tests.witnesses.conftest import MemoryLog, Reader

BLOCK = """\
========= Invalid __global__ read of size 4 bytes
=========     at gather_rows<64>(float const *, int)+0x100 in /srv/k/gather.cu:96
=========     by thread ({thread},0,0) in block ({block},0,0)
=========     Access to 0x8349ec80{thread:04x} is {wrong}
=========     and is 4,388 bytes after the nearest allocation at 0x7f4c26000000 of size 33,554,432 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch [0x1da1] in __triton_launcher.so
=========         Host Frame: __call__ in driver.py:713
=========         Host Frame: run in jit.py:744
=========         Host Frame: decode in serve.py:41
=========         Host Frame: <module> in main.py:7
========="""
HIT = (
    '========= Program hit {name} (error {code}) due to "{words}" on CUDA API call to {api}.\n'
    "=========     Saved host backtrace up to driver entry point at error\n"
    "=========         Host Frame: main [0x1] in a"
)


def block(thread: int = 7, at: int = 0, wrong: str = "out of bounds") -> str:
    return BLOCK.format(thread=thread, block=at, wrong=wrong)


def hit(name: str = "cudaErrorLaunchFailure", code: int = 719, api: str = "cudaFree") -> str:
    return HIT.format(name=name, code=code, words="unspecified launch failure", api=api)


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_a_block_is_exact_for_kernel_place_and_thread(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, block()))
    assert (fault.kind, fault.site, fault.line, fault.last_line) == ("illegal_address", "device", 1, 11)
    assert fault.state is not None
    assert (fault.state.kernel, fault.state.pc) == ("gather_rows<64>", "+0x100")
    assert fault.location == SourceFrame(file="/srv/k/gather.cu", line=96, function="gather_rows")
    assert "thread (7,0,0) of block (0,0,0); out of bounds; 4,388 bytes after" in fault.text


def test_the_launch_site_is_the_innermost_frame_of_the_user(read: Reader) -> None:
    """Frames come innermost first; the launchers of Triton stand before the user's line."""
    (fault,) = faults(read(WITNESS, block()))
    assert fault.python == SourceFrame(file="serve.py", line=41, function="decode")


def test_where_all_frames_are_launchers_the_outermost_is_taken(read: Reader) -> None:
    lines = [line for line in block().splitlines() if "serve.py" not in line and "main.py" not in line]
    (fault,) = faults(read(WITNESS, lines))
    assert fault.python == SourceFrame(file="jit.py", line=744, function="run")


def test_blocks_of_one_instruction_are_folded_with_their_ranges(read: Reader) -> None:
    text = "\n".join(block(thread, at) for at in range(3) for thread in range(4, 10))
    (fault,) = faults(read(WITNESS, text))
    assert fault.count == 18
    assert "18 threads: (4,0,0) to (9,0,0) of blocks (0,0,0) to (2,0,0)" in fault.text


def test_another_access_at_another_instruction_is_another_fault(read: Reader) -> None:
    other = block().replace("+0x100", "+0x220").replace("read of", "write of")
    assert len(faults(read(WITNESS, f"{block()}\n{other}"))) == 2


def test_the_call_that_meets_it_is_code_719_at_a_wait(read: Reader) -> None:
    _, met = faults(read(WITNESS, f"{block()}\n{hit()}"))
    assert (met.code, met.kind, met.site, met.state) == (719, "launch_failure", "sync", None)


def test_an_argument_error_is_the_calls_own(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, hit("cudaErrorInvalidValue", 1, "cudaMemcpy")))
    assert (fault.kind, fault.site) == ("invalid_argument", "host")


def test_queries_that_fail_by_design_are_no_faults(read: Reader) -> None:
    reading = read(WITNESS, hit("CUDA_ERROR_INVALID_VALUE", 1, "cuPointerGetAttribute"))
    assert (reading.records, reading.parsed, reading.continuation) == ([], [1], [2, 3])


def test_a_misaligned_access_has_its_own_kind(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, block(wrong="misaligned")))
    assert fault.kind == "misaligned_address"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("Misaligned shared or local address", "misaligned_address"),
        ("Out-of-range shared or local address", "illegal_address"),
        ("Illegal instruction", "illegal_instruction"),
        ("Invalid address space", "invalid_address_space"),
        ("Stack overflow", "launch_failure"),
        ("Barrier error detected. Divergent thread(s) in block", "unknown"),
        ("Uninitialized __global__ memory read of size 4", "unknown"),
        ("Error: Race reported between Write access at k(int)+0x140 in s.cu:8", "unknown"),
    ],
)
def test_kinds_of_messages(read: Reader, head: str, kind: str) -> None:
    text = f"========= {head}\n=========     at 0x00000160 in /srv/k.cu:8:k(int)\n"
    (fault,) = faults(read(WITNESS, text))
    assert fault.kind == kind
    assert fault.state is not None
    assert fault.state.kernel == "k"


def test_a_race_warning_is_advice(read: Reader) -> None:
    text = "========= Warning: Race reported between Read access at k(int)+0x140 in s.cu:8"
    (fault,) = faults(read(WITNESS, text))
    assert (fault.advice, fault.kernel) == (True, "k")


def test_the_outermost_device_frame_is_the_kernel(read: Reader) -> None:
    lines = block().splitlines()
    lines.insert(5, "=========     Device Frame:void outer<int>(T1 &, T2)+0xd0 in /srv/k/outer.h:62")
    (fault,) = faults(read(WITNESS, lines))
    assert fault.kernel == "outer<int>"


def test_an_unknown_message_is_a_loss(read: Reader) -> None:
    reading = read(WITNESS, "========= COMPUTE-SANITIZER\n========= Something new\n=========     at k+0x1")
    (loss,) = reading.losses
    assert (loss.line, loss.text) == (2, "========= Something new")


def test_an_unknown_line_of_a_block_is_a_loss(read: Reader) -> None:
    (loss,) = read(WITNESS, f"{block()[:-10]}\n=========     Zebra crossing 7").losses
    assert loss.line == 12


@pytest.mark.parametrize("text", ["========= Epoch 3 =========", "========= Results", "============ a"])
def test_rules_of_other_programs_are_none_of_ours(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert (reading.records, reading.losses, reading.parsed) == ([], [], [])


def test_blocks_of_two_processes_interleave() -> None:
    one, two = block(1).splitlines(), block(2).replace("gather", "scatter").splitlines()
    log = MemoryLog([line for pair in zip(one, two, strict=True) for line in pair], ["a", "b"] * len(one))
    kernels = [fault.kernel for fault in faults(WITNESS.read(log.gated(WITNESS), log))]
    assert kernels == ["gather_rows<64>", "scatter_rows<64>"]


def test_names_of_kernels() -> None:
    assert without_parameters("void a::k<(int)4, f(x)>(T1, float (&)[1], int)") == "a::k<(int)4, f(x)>"
    assert without_parameters("plain") == "plain"
    assert base_name("void a::k<b::c>(int)") == "k"


@pytest.mark.parametrize(
    ("name", "code", "api"),
    [
        ("cudaErrorPeerAccessAlreadyEnabled", 704, "cudaDeviceEnablePeerAccess"),
        ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", 704, "cuCtxEnablePeerAccess"),
        ("cudaErrorHostMemoryAlreadyRegistered", 712, "cudaHostRegister"),
    ],
)
def test_an_answer_that_the_state_is_there_already_is_no_fault(
    read: Reader, name: str, code: int, api: str
) -> None:
    reading = read(WITNESS, hit(name, code, api))
    assert (reading.records, reading.parsed, reading.losses) == ([], [1], [])


def test_a_hit_that_says_cuda_first_is_read_as_one(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, hit().replace("Program hit", "CUDA Program hit")))
    assert (fault.code, fault.site, fault.name) == (719, "sync", "cudaErrorLaunchFailure")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("Uninitialized __global__ memory read of size 4 bytes", "read of uninitialised memory"),
        ("Barrier error detected. Divergent thread(s) in block.", "barrier that not all threads reach"),
    ],
)
def test_what_has_no_kind_of_its_own_is_told_by_its_name(read: Reader, head: str, name: str) -> None:
    """The vocabulary of design.md 7 has no kind for it: none of the others would be true."""
    (fault,) = faults(read(WITNESS, f"========= {head}\n=========     at k(int)+0x10"))
    assert (fault.kind, fault.name) == ("unknown", name)


def test_a_call_that_the_program_handles_is_advice(read: Reader) -> None:
    text = hit("cudaErrorNotSupported", 801, "cudaMemGetAddressRange")
    (fault,) = faults(read(WITNESS, text))
    assert fault.advice
    (fault,) = faults(read(WITNESS, f"{text}\n========= Target application returned an error"))
    assert not fault.advice
    (fault,) = faults(read(WITNESS, hit()))
    assert not fault.advice  # 719: the context is lost


BARRIER = """\
========= Barrier error detected. Divergent thread(s) in block.
=========     at __syncthreads()+0x20 in {header}:110
=========     by thread (32,0,0) in block (0,0,0)
=========     Device Frame: {kernel}(float *, int)+0x1a0 in /srv/h/{kernel}.cu:44"""


@pytest.mark.parametrize(
    "header",
    [
        "/usr/local/cuda/include/crt/sm_30_intrinsics.hpp",
        "/usr/local/cuda-12.4/targets/x86_64-linux/include/crt/sm_30_intrinsics.hpp",
        "sm_30_intrinsics.hpp",
    ],
)
def test_a_barrier_in_a_header_of_cuda_is_at_who_called_it(read: Reader, header: str) -> None:
    (fault,) = faults(read(WITNESS, BARRIER.format(header=header, kernel="halo")))
    assert fault.location == SourceFrame(file="/srv/h/halo.cu", line=44, function="halo")
    assert fault.state is not None
    assert (fault.state.kernel, fault.state.pc) == ("halo", "+0x1a0")


def test_two_kernels_at_one_barrier_are_two_faults(read: Reader) -> None:
    header = "sm_30_intrinsics.hpp"
    texts = [BARRIER.format(header=header, kernel=kernel) for kernel in ("halo", "edges", "halo")]
    found = faults(read(WITNESS, "\n".join(texts)))
    assert [(one.kernel, one.count) for one in found] == [("halo", 2), ("edges", 1)]


def test_a_place_in_the_users_own_header_stays(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, BARRIER.format(header="/srv/h/include/barrier.hpp", kernel="halo")))
    assert fault.location is not None
    assert fault.location.file == "/srv/h/include/barrier.hpp"


def test_a_frame_of_cuda_memcheck_gives_its_place(read: Reader) -> None:
    text = """\
========= Barrier error detected. Invalid arguments
=========     at 0x00000030 in /usr/local/cuda/include/sm_30_intrinsics.hpp:110:__syncwarp(unsigned int)
=========     by thread (0,30,0) in block (0,0,0)
=========     Device Frame:/srv/k/reduce.hpp:689:reduce(int*, bool) (reduce(int*, bool) : 0xff0)"""
    (fault,) = faults(read(WITNESS, text))
    assert fault.location == SourceFrame(file="/srv/k/reduce.hpp", line=689, function="reduce")


def test_a_copy_of_unwritten_memory_is_told_as_such(read: Reader) -> None:
    head = "========= Host API memory access error at host access to 0x7f7941430200 of size 16 bytes\n"
    body = "=========     Uninitialized access at 0x7f7941430200 on access by cudaMemcpy source"
    (fault,) = faults(read(WITNESS, head + body))
    assert fault.name == "read of memory that was never written, by a call of the host"
    assert "on access by cudaMemcpy source" in fault.text
    (fault,) = faults(read(WITNESS, head))
    assert fault.name == "invalid memory access by a call of the host"
