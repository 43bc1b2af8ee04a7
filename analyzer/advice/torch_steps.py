"""What to run next on a PyTorch program (formats.md 3.4, 3.8; observed.md 21-26)."""

from __future__ import annotations

from analyzer.advice.commands import BLOCKING, COMMAND, KNOWN, TORCH_POOL_OFF
from analyzer.advice.dump_steps import HIDDEN, dump_step
from analyzer.advice.graph_steps import eager_command, replayed_step
from analyzer.advice.program import Program
from analyzer.advice.sanitizer_steps import SANITIZER, is_of_sanitizer
from analyzer.model import FaultRecord
from analyzer.schema import Confidence, Modes, NextStep
from analyzer.tables.kinds import ACCESS
from analyzer.witness import witness_named

__all__ = ["COMMAND", "torch_steps"]

_MODULES = (
    "for name, m in model.named_modules(): m.register_forward_hook(lambda m, args, out, name=name: "
    "print(name) if torch.is_tensor(out) and not out.isfinite().all() else None)"
)


def torch_steps(fault: FaultRecord, confidence: Confidence, modes: Modes, program: Program) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a kind that needs no further run."""
    if fault.kind in ACCESS or fault.kind == "library_status":
        return _device_fault(fault, confidence, modes, program)
    if fault.kind == "device_assert":
        return [] if modes.launch_blocking else [_line_of_assert(fault)]
    if fault.kind == "nan":
        return _for_nan(fault, confidence)
    if fault.kind == "no_kernel_image":
        why = "compares the architectures of the build with the device"
        show = "import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())"
        return [NextStep(command=f'python -c "{show}"', why=why)]
    return []


def _device_fault(
    fault: FaultRecord, confidence: Confidence, modes: Modes, program: Program
) -> list[NextStep]:
    """Blocking first, then a core dump, which also catches what blocking hides, then the sanitizer."""
    if fault.vendor == "amd":
        return [
            _step(
                "AMD_SERIALIZE_KERNEL=3 AMD_SERIALIZE_COPY=3 AMD_LOG_LEVEL=3",
                "runs kernels one by one and logs each: the last ShaderName is the one that failed",
            )
        ]
    if confidence in KNOWN:
        return [*dump_step(fault, modes, program, None), _sanitizer(fault, program)]
    steps = dump_step(fault, modes, program, HIDDEN)
    if program.graph:
        steps.insert(0, replayed_step(program))
    elif not modes.launch_blocking:
        why = "the error is then raised by the launch that caused it, with its Python line"
        steps.insert(0, _step(BLOCKING, why))
    if program.dump:
        steps.reverse()  # a dump that is there costs no run
    return [*steps, _sanitizer(fault, program)]


def _line_of_assert(fault: FaultRecord) -> NextStep:
    """The assert names the kernel; what is missing is who launched it."""
    why = "adds the Python line whose launch failed the assertion"
    return _step("AMD_SERIALIZE_KERNEL=3" if fault.vendor == "amd" else BLOCKING, why)


def _sanitizer(fault: FaultRecord, program: Program) -> NextStep:
    command = eager_command(program) if program.graph else COMMAND
    if is_of_sanitizer(fault):
        why = (
            "the sanitizer only told the call that met the error: memcheck of all processes tells more; "
            "the caching allocator is off because pooled memory hides overruns"
        )
        tool = f"{SANITIZER} --tool memcheck --target-processes all"
        return NextStep(command=f"{TORCH_POOL_OFF} {tool} {command}", why=why)
    why = (
        "gives the exact thread, address and allocation; the caching allocator is off because pooled memory "
        "hides overruns"
    )
    return NextStep(command=f"{TORCH_POOL_OFF} {SANITIZER} --tool memcheck {command}", why=why)


def _for_nan(fault: FaultRecord, confidence: Confidence) -> list[NextStep]:
    """Who made it; the check that found it is only the messenger."""
    witness = witness_named(fault.witness)
    if witness.value_printer and confidence != "undecided":
        return []  # the printer named the kernel already
    if witness.program == "inductor":
        return [_step("TORCH_COMPILE_DEBUG=1", f"writes the code that made {fault.label or 'the buffer'}")]
    if witness.program == "aoti":
        why = (
            "prints what each kernel is given and leaves, from the start: the first NaN has its maker above "
            "it; the variable counts when the model is compiled, so compile it again with it"
        )
        return [_step("AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2", why)]
    why = "the first module whose output is not finite made it: what raises only looks at the end"
    return [NextStep(command=f"{_MODULES}   # Python, once the model is loaded", why=why)]


def _step(settings: str, why: str) -> NextStep:
    return NextStep(command=f"{settings} {COMMAND}", why=why)
