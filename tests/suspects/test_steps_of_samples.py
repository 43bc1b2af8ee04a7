"""What to run next on real logs: what stands around a fault reaches the commands."""

from __future__ import annotations

import pytest

from tests import samples


@pytest.mark.parametrize(
    ("case", "first", "never"),
    [
        ("compute-sanitizer/only_program_hit", "CUDA_LAUNCH_BLOCKING=1", "MODULAR"),
        ("mojo_assert/gather_index", "MODULAR_DEBUG=", "PYTORCH"),
        ("vllm/graph_replay_buildkite", "CUDA_LAUNCH_BLOCKING=1 ", "memcheck <your command>\n"),
        ("sglang/tensor_map_700", "cuda-gdb -batch", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"),
        ("xid/recovery_verdict", "nvidia-smi -q", "MODULAR"),
        ("kubernetes/liveness_probe", "kubectl logs mixtral-0 -n inference -c server", "<pod>"),
        ("kubernetes/oom_killed", "kubectl describe pod llama-serve-7d9c6b5f4-x2x9q -n", "<pod>"),
        ("python_traceback/dataloader_bus_error", "df -h /dev/shm", "pdb"),
    ],
)
def test_steps_of(case: str, first: str, never: str) -> None:
    steps = "\n".join(step.command for step in samples.analysis(case).next_steps) + "\n"
    assert steps.startswith(first)
    assert never not in steps
