"""GPU faults in the kernel's log (formats.md 3.17, 3.20, observed.md 27)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import polars as pl
import pytest

from analyzer.grammar import parse
from analyzer.model import Advice, FaultRecord
from analyzer.tables.xids import XIDS, by_name, by_number, kind_of
from analyzer.witnesses.xid import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

PCI = "NVRM: Xid (PCI:0000:00:06): "
MMU = "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x83d8_b3e00000. Fault is of type FAULT_PDE"


def timed(lines: list[tuple[float, str]]) -> list[FaultRecord]:
    log = MemoryLog([text for _, text in lines])
    frame = log.gated(WITNESS).with_columns(
        pl.Series("time_ns", [int(second * 1e9) for second, _ in lines], dtype=pl.Int64),
        pl.lit("boot").alias("clock"),
    )
    return [r for r in WITNESS.read(frame, log).records if isinstance(r, FaultRecord)]


def the_fault(read: Reader, text: str) -> FaultRecord:
    reading = read(WITNESS, text)
    assert not reading.losses
    (record,) = reading.records
    assert isinstance(record, FaultRecord)
    return record


def test_the_process_is_the_one_that_the_driver_names(read: Reader) -> None:
    fault = the_fault(read, f"{PCI}31, pid=763, name=python3, channel 0x00000082, intr 00000000. {MMU}")
    assert (fault.process, fault.name, fault.kind) == ("python3 pid=763", "Xid 31", "illegal_address")
    assert (fault.site, fault.kernel) == ("driver_log", None)


@pytest.mark.parametrize(
    ("text", "process"),
    [
        (f"{PCI}79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "GPU 0000:00:06"),
        ("NVRM: Xid (0000:01:00): 79, GPU has fallen off the bus.", "GPU 0000:01:00"),
        ("NVRM: Xid (PCI:0000:c4:00 GPU-I:05 GPU-CI:00): 79, pid=7, name=a b, lost", "a b pid=7"),
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=<unknown>, name=<unknown>", "GPU 0000:01:00"),
    ],
)
def test_forms_of_old_and_new_drivers(read: Reader, text: str, process: str) -> None:
    fault = the_fault(read, text)
    assert (fault.process, fault.kind) == (process, "device_lost")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Out Of Range Address", "illegal_address"),
        ("Misaligned Address", "misaligned_address"),
        ("Illegal Instruction Encoding", "illegal_instruction"),
        ("MMU Fault", "illegal_address"),
        ("Stack Error", "launch_failure"),
    ],
)
def test_the_words_of_an_exception_give_its_kind(read: Reader, words: str, kind: str) -> None:
    fault = the_fault(read, f"{PCI}13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): {words}")
    assert fault.kind == kind


def test_lines_of_one_fault_are_one_event_and_take_the_next_pid() -> None:
    """Xid 13 has no pid; the Xid 31 half a second later has (observed.md 27)."""
    first, second = timed(
        [
            (59.294, f"{PCI}13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): MMU Fault"),
            (59.295, f"{PCI}13, Graphics Exception: ESR 0x519730=0x8020017 0x519734=0x20"),
            (59.702, f"{PCI}31, pid=826, name=python3, channel 0x00000082, intr 00000000. {MMU}"),
        ]
    )
    assert (first.count, first.last_line, first.process) == (2, 2, "python3 pid=826")
    assert second.process == "python3 pid=826"


def test_the_same_number_later_is_another_event() -> None:
    text = f"{PCI}31, pid=826, name=python3, channel 0x00000082, intr 00000000. {MMU}"
    assert [fault.line for fault in timed([(1, text), (1.2, text), (40, text)])] == [1, 3]


def test_a_pid_comes_only_from_the_same_gpu() -> None:
    first, _ = timed([(1, f"{PCI}13, x"), (1.2, "NVRM: Xid (PCI:0000:00:07): 31, pid=8, name=a, y")])
    assert first.process == "GPU 0000:00:06"


def test_hardware_without_a_pid_is_about_the_whole_gpu() -> None:
    """Whoever is named next is one of those who use it."""
    first, second = timed(
        [(1, f"{PCI}79, GPU has fallen off the bus."), (1.2, f"{PCI}45, pid=8, name=a, Ch 1")]
    )
    assert (first.process, second.process) == ("GPU 0000:00:06", "a pid=8")
    assert (first.device, second.device) == ("0000:00:06", "0000:00:06")


def test_a_clean_up_has_the_kind_of_the_xid_that_it_names() -> None:
    told, bare = f"{PCI}45, pid=8, name=a, Ch 1 caused by previous Xid", f"{PCI}45, pid=8, name=a, Ch 1"
    found = timed([(1, bare), (1.1, f"{told} 149"), (1.2, f"{told} 31"), (1.3, f"{told} 45")])
    assert [one.kind for one in found] == ["unknown", "device_lost", "illegal_address"]
    assert [one.count for one in found] == [2, 1, 1]


@pytest.mark.parametrize(
    ("text", "kind", "process"),
    [
        ("109, pid=9, name=MainThrd, channel 0x0000000f, errorString CTX SWITCH TIMEOUT, Info 0x1c016", "hang_timeout", "MainThrd pid=9"),
        ("119, pid=9, name=nvc:[driver], Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).", "device_lost", "nvc:[driver] pid=9"),
        ("120, GSP kernel exception: store access page fault (cause:0xf) @ pc:0xffffffff93003d42, partition:4#0", "device_lost", "GPU 0000:00:06"),
        ("62, 223b6a66 00002100 00000000 20662342 20662ba6 20664272 2065f7ca 2063f48c", "device_lost", "GPU 0000:00:06"),
        ("69, Class Error: ChId 003b, Class 0000c197, Offset 00001618, Data 00000004, ErrorCode 0000000d", "unknown", "GPU 0000:00:06"),
        ("31, pid=9, name=x, Ch 00000008, intr 00000000. MMU Fault: ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x7f21_11000000. Fault is of type FAULT_PTE ACCESS_TYPE_VIRT_READ", "illegal_address", "x pid=9"),
        ("74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14(0x100000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "device_lost", "GPU 0000:00:06"),
        ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 0x00000000 0x00000000)", "device_lost", "GPU 0000:00:06"),
        ("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)", "device_lost", "GPU 0000:00:06"),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000)", "unknown", "GPU 0000:00:06"),
        ("154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "unknown", "GPU 0000:00:06"),
        ("158, GPU Fatal Timeout", "device_lost", "GPU 0000:00:06"),
    ],
)  # fmt: skip
def test_texts_of_newer_drivers(read: Reader, text: str, kind: str, process: str) -> None:
    fault = the_fault(read, PCI + text)
    assert (fault.kind, fault.process, fault.device) == (kind, process, "0000:00:06")


def test_recovery_to_none_is_no_fault(read: Reader) -> None:
    text = f"{PCI}154, pid=1, name=a, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    (record,) = read(WITNESS, text).records
    assert isinstance(record, Advice)


def test_a_switch_message_is_hardware_if_it_is_fatal(read: Reader) -> None:
    head = "nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, "
    assert the_fault(read, head + "Fatal, Link 30 LTSSM Fault Up").kind == "device_lost"
    assert the_fault(read, head + "Non-fatal, Link 30").kind == "unknown"


def test_a_gpu_that_is_gone_without_an_xid(read: Reader) -> None:
    text = "NVRM: (PCI ID: 10de:26b5) installed in this system has\nNVRM: fallen off the bus and is not responding"
    fault = the_fault(read, text)
    assert (fault.name, fault.line, fault.device) == ("Xid 79", 2, None)
    named = the_fault(read, "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.")
    assert (named.process, named.device) == ("GPU 0000:01:00", "0000:01:00")


@pytest.mark.parametrize(
    "lines",
    [
        ["amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process python pid 1796 thread python pid 1796)"],
        [
            "amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:173 vmid:8 pasid:32791)",
            "amdgpu 0000:0b:00.0: amdgpu:  Process python pid 1796 thread python pid 1796",
            "amdgpu 0000:0b:00.0: amdgpu:   in page starting at address 0x00007febd6383000 from client 10",
        ],
        [
            "amdgpu 0000:0b:00.0: [gfxhub0] no-retry page fault (src_id:0 ring:208 vmid:3 pasid:32616)",
            "amdgpu 0000:0b:00.0:  Process python pid 1796 thread python pid 1796",
            "amdgpu 0000:0b:00.0:   in page starting at address 0x000071d331ff2000 from IH client 0x1b (UTCL2)",
        ],
    ],
)  # fmt: skip
def test_page_faults_of_amd(read: Reader, lines: list[str]) -> None:
    fault = the_fault(read, "\n".join(lines))
    assert (fault.process, fault.vendor, fault.kind) == ("python pid=1796", "amd", "illegal_address")
    assert fault.last_line == len(lines)


def test_a_page_fault_whose_process_is_not_known(read: Reader) -> None:
    """The driver's own work: it prints pid 0 and no name."""
    text = "amdgpu 0000:03:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:0 vmid:0 pasid:0, for process  pid 0 thread  pid 0)"
    assert the_fault(read, text).process == "GPU 0000:03:00.0"


def test_a_message_of_the_family_that_does_not_parse_is_a_loss(read: Reader) -> None:
    (loss,) = read(WITNESS, "NVRM: Xid (PCI:zz): 31").losses
    assert loss.line == 1


def test_the_rule_for_hardware_and_software() -> None:
    """formats.md 3.20: these alone speak for software, those for hardware; 154 only sums up others."""
    reading = {row.number: row.reading for row in XIDS}
    assert {reading[n] for n in (13, 31, 109)} == {"software"}
    assert {reading[n] for n in (43, 45, 69, 154)} == {"secondary"}
    hardware = (48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 121, 140, 171, 172)
    assert {reading[n] for n in hardware} == {"hardware"}


def test_names_of_records_lead_back_to_the_table() -> None:
    assert by_name("Xid 31") == by_number(31)
    assert by_name("cudaErrorUnknown") is None
    assert kind_of(None, "x") == "unknown"


RING = "signaled seq=3312, emitted seq=3314"
RINGS = [
    [
        f"amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, {RING}",
        "amdgpu 0000:03:00.0: amdgpu: Process information: process llama-server pid 4711 thread llama-serve:cs0 pid 4720",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
        "amdgpu 0000:03:00.0: amdgpu: MODE1 reset",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) succeeded!",
    ],
    [
        f"amdgpu 0000:03:00.0: ring comp_1.1.0 timeout, {RING}",
        "amdgpu 0000:03:00.0:  Process llama-server pid 4711 thread llama-server pid 4711",
        "amdgpu 0000:03:00.0: Starting comp_1.1.0 ring reset",
        "amdgpu 0000:03:00.0: Ring comp_1.1.0 reset succeeded",
        "amdgpu 0000:03:00.0: [drm] device wedged, but recovered through reset",
    ],
    [
        f"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, {RING}",
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process llama-server pid 4711 thread a pid 4711",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
    ],
]


@pytest.mark.parametrize("lines", RINGS, ids=["newer", "newest", "oldest"])
def test_a_hang_of_amd_in_three_generations_of_the_driver(read: Reader, lines: list[str]) -> None:
    reading = read(WITNESS, lines)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.name, fault.vendor) == ("hang_timeout", "ring timeout", "amd")
    assert (fault.process, fault.device) == ("llama-server pid=4711", "0000:03:00.0")
    assert not reading.losses
    assert len(reading.parsed) + len(reading.continuation) == len(lines)


def test_a_reset_alone_tells_that_something_failed_and_not_what(read: Reader) -> None:
    fault = the_fault(read, "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!")
    assert (fault.name, fault.kind, fault.process) == ("GPU reset", "unknown", "GPU 0000:03:00.0")


@pytest.mark.parametrize(
    "text",
    [
        "amdgpu 0000:03:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
        "amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0 2 uncorrectable hardware errors detected in umc block",
        "amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0, 1 new uncorrectable hardware errors detected in gfx block",
        "amdgpu 0000:03:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        "amdgpu 0000:03:00.0: amdgpu: RAS event of type ERREVENT_ATHUB_INTERRUPT detected!",
    ],
)
def test_an_uncorrectable_error_of_amd_is_of_hardware(read: Reader, text: str) -> None:
    fault = the_fault(read, text)
    assert (fault.kind, fault.vendor, fault.device) == ("ecc_error", "amd", "0000:03:00.0")


@pytest.mark.parametrize(
    "text",
    [
        "amdgpu 0000:03:00.0: amdgpu: no uncorrectable hardware errors detected in umc block",
        "amdgpu 0000:03:00.0: amdgpu: 1 correctable hardware errors detected in umc block",
        "amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0 0 uncorrectable hardware errors detected in umc block",
        "amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0, 3 uncorrectable hardware errors detected in total in umc block",
        "the GPU reset is planned for tonight",
        "reader: ring timeout, signaled seq=1",
    ],
)
def test_what_is_no_error_of_amd_is_silent(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert (reading.records, reading.losses) == ([], [])


@pytest.mark.parametrize(
    ("gpu", "device"),
    [
        ("GPU0000:3B:00.0", "0000:3b:00"),
        ("GPU1: 0000:5E:00.0", "0000:5e:00"),
        ("GPU 0000:3B:00.0", "0000:3b:00"),
    ],
)
def test_nvidia_smi_names_a_gpu_that_the_driver_lost(read: Reader, gpu: str, device: str) -> None:
    text = f"Unable to determine the device handle for {gpu}: GPU is lost.  Reboot the system to recover this GPU"
    fault = the_fault(read, text)
    assert (fault.kind, fault.device, fault.process) == ("device_lost", device, f"GPU {device}")


def test_nvidia_smi_that_fails_for_another_reason_tells_of_no_lost_gpu(read: Reader) -> None:
    assert not read(
        WITNESS, "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error"
    ).records


def test_a_lost_gpu_is_told_once(read: Reader) -> None:
    lines = [
        f"{PCI}79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU0000:00:06.0: GPU is lost. Reboot the system",
    ]
    assert [record.line for record in read(WITNESS, lines).records] == [1]


def test_processes_and_gpus_do_not_make_a_text_another_one_for_the_grammar(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand processes are one text, and each keeps its pid, name and GPU."""
    parsed: list[str] = []

    def counted(name: str, text: str, start: str = "start") -> object:
        parsed.append(text)
        return parse(name, text, start)

    monkeypatch.setattr("analyzer.witnesses.forms.parse", counted)
    lines = [f"NVRM: Xid (PCI:0000:{n:02x}:00): 31, pid={n}, name=p{n}, Ch 0000001f" for n in range(200)]
    records = read(WITNESS, lines).records
    assert len(parsed) == 1
    told = [(one.process, one.device) for one in records if isinstance(one, FaultRecord)]
    assert told == [(f"p{n} pid={n}", f"0000:{n:02x}:00") for n in range(200)]
