"""What to run next: it fits the program that the log shows, uses what the log has, and is never missing."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from analyzer.advice.container_steps import container_of
from analyzer.advice.hang_steps import _STORE
from analyzer.advice.next_steps import next_steps
from analyzer.advice.program import _DUMP_FILE, Seen, seen_around
from analyzer.model import Advice, FaultRecord, KernelState
from analyzer.schema import Confidence, FaultKind, Modes, SourceFrame
from tests import samples
from tests.incident.records import fault

BLOCKING = "CUDA_LAUNCH_BLOCKING=1"
SYNC = "device-sync-mode"
DUMP = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1"
HINT = Advice(source=0, line=20, text="set it", command="MODULAR_DEBUG=device-sync-mode")


def commands(
    record: FaultRecord,
    *,
    confidence: Confidence = "undecided",
    modes: Modes = Modes(),  # noqa: B008  (frozen)
    advice: list[Advice] | None = None,
    has_ops: bool = False,
    **seen: Any,
) -> str:
    steps = next_steps(
        record,
        confidence,
        modes,
        advice or [],
        has_ops=has_ops,
        seen=Seen(records=(record, *seen.pop("records", ())), **seen),
    )
    assert all(step.why for step in steps)
    return "\n".join(step.command for step in steps)


def test_every_undecided_sample_has_a_step() -> None:
    undecided = [case.name for case in samples.cases() if _is_undecided(case.name)]
    assert undecided
    without = [name for name in undecided if not samples.analysis(name).next_steps]
    assert not without


def _is_undecided(name: str) -> bool:
    return samples.analysis(name).conclusion.confidence == "undecided"


@pytest.mark.parametrize("kind", get_args(FaultKind))
@pytest.mark.parametrize("site", ["device", "launch", "sync", "host", "kernel_log", "unknown"])
@pytest.mark.parametrize("witness", ["c10", "max_errors", "ggml", "vllm", "compute-sanitizer", "cuda-gdb"])
def test_nothing_undecided_is_without_a_step(kind: str, site: str, witness: str) -> None:
    assert commands(fault(line=1, kind=kind, site=site, witness=witness))


class TestFramework:
    """Settings of one framework mean nothing to the other."""

    @pytest.mark.parametrize(
        ("told", "has", "has_not"),
        [
            ({"witness": "c10"}, BLOCKING, "MODULAR_DEBUG"),
            ({"witness": "max_errors"}, SYNC, "PYTORCH"),
            ({"witness": "mojo_assert", "kind": "device_assert", "site": "device"}, SYNC, BLOCKING),
            ({"witness": "ggml"}, BLOCKING, "PYTORCH"),
        ],
    )
    def test_the_witness_of_the_fault_decides(self, told: dict[str, Any], has: str, has_not: str) -> None:
        shown = commands(fault(line=1, **told), around=("libtorch.so", "max/serve/worker.py"))
        assert has in shown
        assert has_not not in shown

    def test_frames_of_a_report_decide_where_no_witness_does(self) -> None:
        met = fault(line=3, witness="compute-sanitizer")
        shown = commands(met, around=("=====  Host Frame: torch::cuda::synchronize in libtorch_python.so",))
        assert BLOCKING in shown
        assert "MODULAR" not in shown

    def test_other_records_decide_before_the_text(self) -> None:
        asserted = fault(line=3, kind="device_assert", site="device", witness="device_assert")
        late = fault(line=9, kind="device_assert", witness="max_errors")
        assert SYNC in commands(asserted, confidence="proven", records=(late,), around=("libtorch.so",))

    def test_where_it_is_not_known_both_are_said(self) -> None:
        shown = commands(fault(line=3, witness="compute-sanitizer"))
        assert BLOCKING in shown
        assert SYNC in shown

    def test_a_kernel_of_triton_is_of_pytorch(self) -> None:
        state = KernelState(kernel="add", frame=SourceFrame(file="add.py", line=3, function="add"))
        found = fault(line=3, site="device", witness="cuda-gdb", state=state)
        assert "MODULAR" not in commands(found, confidence="proven")

    def test_advice_of_the_log_is_a_whole_command(self) -> None:
        shown = commands(fault(line=3, kind="kernel_raised", site="host"), confidence="proven", advice=[HINT])
        assert shown == "MODULAR_DEBUG=device-sync-mode <your command>"

    def test_advice_that_a_step_contains_is_not_repeated(self) -> None:
        shown = commands(fault(line=3, witness="max_errors"), advice=[HINT])
        assert shown.count(SYNC) == 1


class TestGraphs:
    """One launch starts all kernels of a graph: blocking cannot name one of them."""

    @pytest.mark.parametrize(
        ("server", "flag"),
        [
            ("vllm", "<your command> --enforce-eager"),
            ("sglang", "<your command> --disable-cuda-graph"),
            ("torchrun", "<your command without CUDA graphs>"),
        ],
    )
    def test_a_fault_at_a_replay_is_tried_without_graphs(self, server: str, flag: str) -> None:
        beside = fault(line=1, kind="peer_lost", witness=server)
        first, *rest = commands(
            fault(line=8), records=(beside,), block=('  File "graphs.py", line 112', "    super().replay()")
        ).splitlines()
        assert first == f"CUDA_LAUNCH_BLOCKING=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1 {flag}"
        assert any(DUMP in one for one in rest)

    def test_also_where_launches_were_blocking_already(self) -> None:
        frame = SourceFrame(file="w.py", line=3, function="run", text="entry.cudagraph.replay()")
        assert "without CUDA graphs" in commands(
            fault(line=8, python=frame), modes=Modes(launch_blocking=True)
        )

    @pytest.mark.parametrize("code", [900, 901, 906])
    def test_an_error_inside_a_capture_is_met_without_it(self, code: int) -> None:
        shown = commands(fault(line=4, kind="invalid_argument", code=code, vendor="nvidia", site="launch"))
        assert shown == "<your command without CUDA graphs>"


class TestWhatTheLogHas:
    """A tool that ran is not asked to run again, and a name that is known is no placeholder."""

    def test_the_sanitizers_report_is_read(self) -> None:
        found = fault(line=5, block_first=3, last_line=17, site="device", witness="compute-sanitizer")
        shown = commands(found, confidence="proven")
        assert "sed -n '3,17p'" in shown
        assert "-lineinfo" in shown
        assert "compute-sanitizer" not in shown

    def test_a_source_line_that_is_named_needs_no_other_build(self) -> None:
        text = "Invalid __global__ read of size 4 bytes at gather+0x100 in /srv/k/gather.cu:96"
        found = fault(line=5, site="device", witness="compute-sanitizer", text=text)
        assert "-lineinfo" not in commands(found, confidence="proven")

    @pytest.mark.parametrize(
        ("line", "file"),
        [
            ("Starting GPU coredump generation, set the CUDA_COREDUMP_SHOW_PROGRESS ...", "<core_*.nvcudmp>"),
            ("coredump: Writing out /var/crash/core_7.nvcudmp", "/var/crash/core_7.nvcudmp"),
        ],
    )
    def test_a_dump_that_was_made_is_opened(self, line: str, file: str) -> None:
        first, *rest = commands(fault(line=5), around=(line,)).splitlines()
        assert first == f'cuda-gdb -batch -ex "target cudacore {file}" -ex "info cuda kernels"'
        assert not any(DUMP in one for one in rest)

    def test_an_opened_dump_is_not_opened_again(self) -> None:
        found = fault(line=5, site="device", witness="cuda-gdb")
        assert "target cudacore" not in commands(found, confidence="proven", around=("core_7.nvcudmp",))

    @pytest.mark.parametrize("device", ["0000:9b:00", "0000:9b:00.0"])
    def test_a_gpu_is_named_by_its_address(self, device: str) -> None:
        bad = fault(
            line=1, kind="ecc_error", site="kernel_log", vendor="nvidia", name="Xid 48", device=device
        )
        assert "drain -p 0000:9b:00.0 -m 1" in commands(bad)

    def test_a_pod_and_its_container_are_named(self) -> None:
        killed = fault(
            line=1, kind="hang_timeout", witness="kubernetes", text="Container server failed liveness"
        )
        described = ("Name:             mixtral-0", "Namespace:        inference", "Containers:", "  server:")
        assert (
            commands(killed, around=described) == "kubectl logs mixtral-0 -n inference -c server --previous"
        )
        event = ("  Back-off restarting failed container server in pod mixtral-0_inference(55aa)",)
        assert "logs mixtral-0 -n inference" in commands(killed, around=event)
        two = ("Name:   a-0", "Name:   b-0")
        assert "logs <pod> -c server" in commands(killed, around=two)

    def test_lines_around_a_fault_are_read_clipped(self) -> None:
        raw = dict.fromkeys(range(1, 200), "x" * 9000)
        seen = seen_around(
            fault(line=100, block_first=99, last_line=101),
            [],
            lambda first, last: [raw[number] for number in range(first, last + 1)],
        )
        assert (len(seen.block), len(seen.around)) == (3, 83)
        assert len(seen.around[0]) == 2000


class TestHardware:
    """What the driver says about the board is looked at with the board's own counters."""

    @staticmethod
    def of(name: str, label: str) -> str:
        return commands(
            fault(line=1, kind="device_lost", site="kernel_log", vendor="nvidia", name=name, label=label)
        )

    def test_links_have_counters_of_their_own(self) -> None:
        shown = self.of("Xid 149", "NVLink error; check the fabric")
        assert shown.startswith("nvidia-smi nvlink -e")
        assert "ECC" not in shown

    def test_a_switch_is_no_gpu(self) -> None:
        shown = self.of("SXid 20034", "NVSwitch error")
        assert "nvidia-fabricmanager" in shown
        assert "nvidia-smi drain" not in shown
        assert "ECC" not in shown


class TestDeaths:
    """A process that died of a signal."""

    @staticmethod
    def of(text: str, name: str | None = None, kind: str = "host_segfault", **more: Any) -> str:
        told = {"site": "host", "witness": "process_death", **more}
        return commands(fault(line=1, kind=kind, text=text, name=name, **told), confidence="proven")

    def test_stacks_of_a_segfault(self) -> None:
        shown = self.of("Segmentation fault (core dumped)", "SIGSEGV", pid=612)
        assert "coredumpctl info 612" in shown
        assert "ulimit -c unlimited; PYTHONFAULTHANDLER=1" in shown
        assert "gdb -batch -ex run -ex bt --args <your command>" in shown

    def test_a_python_stack_that_is_there_is_not_asked_for(self) -> None:
        assert "PYTHONFAULTHANDLER" not in self.of(
            "Fatal Python error: Segmentation fault in load (api.py:4)"
        )

    @pytest.mark.parametrize("witness", ["ggml", "supervisors"])
    def test_nor_is_one_of_a_program_that_is_not_python(self, witness: str) -> None:
        assert "PYTHON" not in self.of("SIGSEGV: segmentation violation", "SIGSEGV", witness=witness)

    def test_a_kill_is_in_the_kernels_log(self) -> None:
        shown = self.of("Killed (SIGKILL: often for memory: see dmesg)", "SIGKILL", kind="host_abort")
        assert "dmesg -T | grep" in shown
        assert "journalctl -k" in shown
        assert "gdb" not in shown

    @pytest.mark.parametrize("text", ["Fatal Python error: Bus error in shm_open (u.py:88)", "Bus error"])
    def test_a_bus_error_hints_at_shared_memory(self, text: str) -> None:
        shown = self.of(text)
        assert shown.startswith("df -h /dev/shm")
        assert "--shm-size" in shown

    def test_so_does_a_data_loader_that_says_so(self) -> None:
        raised = fault(line=1, kind="unknown", site="host", witness="python_traceback")
        said = "It is possible that dataloader's workers are out of shared memory."
        assert "/dev/shm" in commands(raised, confidence="proven", block=(said,))
        gpu = "out of resource: shared memory, Required: 524288"
        assert "/dev/shm" not in commands(raised, confidence="proven", block=(gpu,))

    def test_broken_host_memory_is_checked(self) -> None:
        assert "MALLOC_CHECK_=3" in self.of("double free or corruption (out)", "SIGABRT", kind="host_abort")

    def test_instructions_that_the_cpu_lacks(self) -> None:
        assert self.of("died (SIGILL)", "SIGILL", kind="host_abort").startswith("lscpu")


class TestWaits:
    """Something waited too long, or lost whom it waited for."""

    def test_a_watchdog_asks_where_the_worker_stays(self) -> None:
        shown = commands(fault(line=1, kind="hang_timeout", site="host", witness="sglang"))
        assert "py-spy dump" in shown
        assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in shown
        assert 'cuda-gdb -batch -p <pid of the worker> -ex "info cuda kernels"' in shown

    def test_a_server_that_still_compiled_is_compiled_beforehand(self) -> None:
        text = "Model Worker failed heartbeat check (it was still compiling at line 3)"
        waited = fault(line=4, kind="hang_timeout", site="host", witness="max_serve", text=text)
        assert commands(waited).startswith("max warm-cache")

    @pytest.mark.parametrize(
        ("text", "command"),
        [
            ("Connection closed by peer [10.20.0.7]:41822. This is", "<log of the rank on 10.20.0.7>"),
            (
                "timed out while trying to connect to (10.20.0.9, 50437).",
                "nc -vz 10.20.0.9 50437",
            ),
            ("Connection reset", "<log of the other ranks>"),
        ],
    )
    def test_a_lost_peer_is_looked_for(self, text: str, command: str) -> None:
        assert command in commands(fault(line=1, kind="peer_lost", site="host", witness="gloo", text=text))

    def test_who_asked_a_worker_to_stop(self) -> None:
        gone = fault(line=1, kind="peer_lost", site="host", witness="max_serve", name="SIGTERM")
        assert commands(gone).startswith("journalctl")

    def test_a_child_that_is_gone_is_in_the_kernels_log(self) -> None:
        gone = fault(line=1, kind="peer_lost", site="host", witness="vllm", relayed=True)
        assert commands(gone).startswith("dmesg -T")


class TestMemory:
    """Which memory ran out, and what of it can be changed."""

    @staticmethod
    def of(text: str, witness: str = "oom", **more: Any) -> str:
        return commands(
            fault(line=1, kind="out_of_memory", site="host", witness=witness, text=text),
            confidence="proven",
            **more,
        )

    def test_a_limit_that_was_set_is_raised_first(self) -> None:
        text = "CUDA out of memory. Tried to allocate 2 GiB. (asked for: the limit of the process, 3 GiB)"
        first, second = self.of(text).splitlines()
        assert first.startswith("torch.cuda.set_per_process_memory_fraction(1.0)   # Python")
        assert second.startswith("torch.cuda.memory._record_memory_history()   # Python")
        served = self.of(text, records=(fault(line=9, kind="peer_lost", witness="vllm"),))
        assert "--gpu-memory-utilization" in served

    def test_who_holds_the_device_is_asked_where_nothing_is_told(self) -> None:
        assert "--query-compute-apps" in self.of("cudaMalloc failed: out of memory")
        assert "ollama serve" in self.of(
            "cudaMalloc failed: out of memory", around=("/usr/bin/ollama runner",)
        )

    @pytest.mark.parametrize(
        ("text", "around", "command"),
        [
            ("llama.service: killed (memory of the host: limit)", "", "systemctl show llama.service -p"),
            ("Detected 1 oom_kill event in StepId=44.0. (memory of the host: limit)", "", "sacct -j 44 -o"),
            ('"OOMKilled": true (memory of the host: limit)', '  "Id": "8c2f0e51ad77",', "8c2f0e51ad77"),
            ("Reason: OOMKilled (memory of the host: limit)", "Name:   llama-7d", "describe pod llama-7d |"),
        ],
    )
    def test_the_limit_is_that_of_what_the_log_names(self, text: str, around: str, command: str) -> None:
        assert command in self.of(text, witness="supervisors", around=(around,))


def test_no_text_of_a_log_is_a_command_of_a_shell() -> None:
    """A person copies these commands: what stands in them of the log is a name, a host or a plain path."""
    evil = ("$(id)", "`id`", ";id", "a|id", "a&id", "x$IFS", 'a"b', "a'b")
    for word in evil:
        assert container_of("", [f"Name:   {word}"]).pod == "<pod>"
        assert _STORE.search(f"connect to ({word}, 29500)") is None
        dump = _DUMP_FILE.search(f"core: {word}/core.nvcudmp")
        assert dump is None or set(dump[0]).isdisjoint("$`;|&\"'")
    found = _DUMP_FILE.search('file "/tmp/core_1.host-a.77.nvcudmp".')
    assert found is not None
    assert found[0] == "/tmp/core_1.host-a.77.nvcudmp"
