"""Error checks of libraries and programs that are no framework: cupy, numba, thrust ... (formats.md 3.16).

What failed follows from the error's name, words or number; whether the place may be believed from the code
and the call (formats.md 2 and 4).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import polars as pl

from analyzer.model import FaultRecord, FaultSite, Reading
from analyzer.numbers import need_integer
from analyzer.schema import FaultKind, SourceFrame
from analyzer.tables.codes import ErrorCode, by_text, vendor_of
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.calls import site_of_call
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, error_code, read_forms, with_traceback

NAME = "cuda_macros"
_PYTHON = frozenset(
    {"cupy", "pycuda", "numba", "tensor_map", "numbered", "failed_with", "all_reduce", "check", "tvm"}
    | {"tvm_call", "tvm_launch"}
)  # raised as exceptions
_OWN_KINDS: dict[str, FaultKind] = {
    "host_assert": "host_abort",
    "index": "input_check",  # candle looks at indices on the host
    "glog": "host_abort",  # CHECK() of glog and Abseil
}
_FUNCTION, _FUNCTION_LINES = "// func_name=", 3
_API = ("cuda", "cu", "hip", "CUDA", "nccl")
_FORMS = (
    Form(rule="cupy", begins=r"(?:[a-z_]+\.)*CUDA(?:Runtime|Driver)Error: "),
    Form(rule="numba", begins=r"CudaAPIError: \["),
    Form(
        rule="pycuda",
        begins=r"(?:pycuda\._driver\.[A-Za-z]+|LogicError|LaunchError): cu[A-Z][A-Za-z0-9_]* failed: ",
    ),
    Form(rule="all_reduce", begins="Failed: C(?:uda|UDA) error "),  # vLLM, DeepEP
    Form(rule="tvm", begins="(?:InternalError|TVMError): CUDA: "),
    Form(rule="tvm_call", begins=r"CUDAError: (?:Check failed: [^:\n]*: ?)?cu[A-Z][A-Za-z0-9_]*\("),
    Form(rule="tvm_launch", begins="CUDALaunch Error: "),
    Form(rule="index", begins="[a-z][a-z-]* invalid index [0-9]+ with dim size "),
    Form(rule="numbered", begins=r"CUDA (?:driver|runtime) error \("),
    Form(rule="tensor_map", begins="Failed to (?:encode tensor map: |initialize the TMA descriptor)"),
    Form(rule="cudarc", begins=r"(?:Driver|Cublas|Cudnn|Curand)Error\((?:CUDA_ERROR|[A-Z]+_STATUS)_"),
    Form(rule="samples", begins="CUDA error at [^ ]+:[0-9]+ code="),
    Form(rule="located", begins="CUDA error (?:encountered )?at: "),
    Form(rule="thrust", begins=r"CUDA error [0-9]+ \["),
    Form(rule="gpuassert", begins="GPUassert: "),
    Form(rule="host_assert", begins=r"[^\s:()]+:[0-9]+: [^\n]*Assertion `[^\n]*== cudaSuccess"),
    Form(rule="check", begins=r"Check failed: \(?[^:(]*== cudaSuccess"),
    Form(rule="failure", begins="CUDA failure [0-9]+: "),
    Form(rule="flashinfer", begins="CUDA Error: "),
    Form(
        rule="failed_with",
        begins=r"[A-Za-z_][A-Za-z0-9_:]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))? failed with error [a-z]",
    ),
    Form(rule="step", begins="(?:[a-z_]+ )+[a-z0-9 ]*: (?:cuda|hip)Error[A-Z]"),
)

# CHECK() of glog and Abseil: the process aborts after it. Only what the logger calls fatal is one, and what
# tells an error of the device or of a library is read by its own words.
_FATAL = Form(rule="glog", begins="^Check failed: ")
_ELSEWHERE = "(?i)cuda|cudnn|cublas|hip|nccl|rccl|out of memory"
_COMMENT = r"^\s*//[/!]?(?:\s|$)"  # the source of a handler is shown


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    reading = Reading()
    for at, one in enumerate(_read_lines(frame, losses)):
        if one.rule == "failed_with" and by_text(_words(one)) is None:  # somebody else's "failed with error"
            reading.not_mine.extend(one.lines)
            continue
        reading.parsed.extend(one.lines)
        fault = _fault(one)
        if one.rule == "tvm_launch":
            fault = _with_function(fault, fetch)
        if one.rule in _PYTHON and at < FETCHED:
            fault, used = with_traceback(fault, fetch)
            reading.continuation.extend(used)
        reading.records.append(fault)
    generic = pl.col("text").str.contains_any(
        [" failed with error ", ": cudaError", "CUDAError: ", " with dim size ", "Check failed: "]
    )
    foreign = frame.filter(generic | pl.col("text").str.contains(_COMMENT))["line"].to_list()
    reading.parsed = sorted(set(reading.parsed))
    lost = {loss.line for loss in losses.all()}
    reading.not_mine = sorted({*reading.not_mine, *foreign} - set(reading.parsed) - lost)
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _read_lines(frame: pl.DataFrame, losses: Losses) -> list[Seen]:
    """The texts of the lines that are no comment, by line; one that is fatal can be a failed check."""
    text = pl.col("text")
    told = frame.filter(~text.str.contains(_COMMENT))
    fatal = (pl.col("level") == "FATAL").fill_null(value=False) & ~text.str.contains(_ELSEWHERE)
    checks = read_forms(told.filter(fatal), NAME, (*_FORMS, _FATAL), losses)
    return sorted([*checks, *read_forms(told.filter(~fatal), NAME, _FORMS, losses)], key=lambda one: one.line)


def _fault(one: Seen) -> FaultRecord:
    name = "SIGABRT" if one.rule == _FATAL.rule else one.get("NAME")
    known = error_code(name, _number(one), _words(one))
    vendor = None if one.rule == _FATAL.rule else vendor_of(name or "") or "nvidia"
    fault = build_fault(
        one, NAME, _kind(one, known, name), _site(one, known), code=known, name=name, vendor=vendor
    )
    return msgspec.structs.replace(
        fault, kernel=_kernel(one), location=_LOCATIONS.get(one.rule, _no_place)(one)
    )


def _with_function(fault: FaultRecord, fetch: Fetch) -> FaultRecord:
    """The fault with the kernel that TVM names below its grid (``// func_name=topk_kernel``)."""
    for line in fetch.after(fault.line, fault.process, _FUNCTION_LINES):
        if line.text.startswith(_FUNCTION):
            kernel = line.text.removeprefix(_FUNCTION).strip()
            return msgspec.structs.replace(fault, kernel=kernel, last_line=max(fault.last_line, line.number))
    return fault


def _words(one: Seen) -> str:
    return (one.get("WORDS") or one.get("STRING") or one.get("QUOTED") or "").strip("'\" ")


def _number(one: Seen) -> int | None:
    numbers = one.get("NUMBERS") or one.get("CODE")
    return need_integer(numbers.strip("()").split()[0]) if numbers else one.number("INT")


def _kind(one: Seen, known: ErrorCode | None, name: str | None) -> FaultKind:
    if known is not None:
        return known.kind
    if one.rule in _OWN_KINDS:
        return _OWN_KINDS[one.rule]
    return "library_status" if "_STATUS_" in (name or "") else "unknown"


def _site(one: Seen, known: ErrorCode | None) -> FaultSite:
    """An error of the call itself is raised there; all other calls met what an earlier launch did."""
    if one.rule in _OWN_KINDS or (known is not None and known.site == "A" and _kernel(one) is None):
        return "host"
    if _kernel(one) is not None or one.rule == "tvm_launch":
        return "launch"
    call = one.get("CALLED_BY") or one.get("CALL") or one.get("CALLED") or one.get("EXPRESSION") or ""
    return site_of_call(call) if call else "sync"


def _kernel(one: Seen) -> str | None:
    """The library's function that failed to launch; a call of the API is none."""
    called = (one.get("CALLED") or "").strip()
    return called if called and not called.startswith(_API) else None


def _no_place(_one: Seen) -> SourceFrame | None:
    return None


def _of_place(one: Seen) -> SourceFrame | None:
    path, _, line = (one.get("PLACE") or "").rpartition(":")
    return SourceFrame(file=path, line=need_integer(line), function="") if path else None


def _of_file(one: Seen) -> SourceFrame | None:
    path, line = one.get("FILE"), one.get("LINE")
    return SourceFrame(file=path.strip(), line=need_integer(line), function="") if path and line else None


_LOCATIONS: dict[str, Callable[[Seen], SourceFrame | None]] = {
    "all_reduce": _of_place,
    "flashinfer": _of_file,
    "gpuassert": _of_file,
    "host_assert": _of_place,
    "located": _of_place,
    "numbered": _of_place,
    "samples": _of_place,
    "thrust": _of_file,
}

WITNESS = Witness(
    name=NAME,
    program="cuda",
    gates=(
        "CUDARuntimeError: ",
        "CUDADriverError: ",
        "CudaAPIError: [",
        "pycuda._driver.",
        "LogicError: cu",
        "Failed: Cuda error ",
        "Failed: CUDA error ",
        "InternalError: CUDA: ",
        "TVMError: CUDA: ",
        "CUDAError: ",
        "CUDALaunch Error: ",
        " with dim size ",
        "CUDA driver error (",
        "CUDA runtime error (",
        "Failed to encode tensor map: ",
        "Failed to initialize the TMA descriptor",
        "DriverError(CUDA_ERROR_",
        "Error(CUBLAS_STATUS_",
        "CUDA error at ",
        "CUDA error at: ",
        "CUDA error encountered at: ",
        "CUDA error 7",
        "GPUassert: ",
        "== cudaSuccess",
        "Check failed: ",
        "CUDA failure ",
        "CUDA Error: ",
        " failed with error ",
        ": cudaError",
    ),
    read=read,
    grammar="cuda_macros.lark",
)
