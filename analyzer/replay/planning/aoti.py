"""Launches that AOTInductor's value printer told, with what it printed or saved of their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import copysign, floor, isfinite, log10
from pathlib import Path

import msgspec
import polars as pl

from analyzer.model import KernelLaunch, PrintedTensor
from analyzer.parse.printed_tensor import is_integer
from analyzer.pipeline import Analysis
from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning.captures import SavedTensor
from analyzer.replay.planning.inductor import Named, find_call
from analyzer.replay.planning.inside import is_inside
from analyzer.replay.planning.saved_files import read_saved
from analyzer.replay.planning.window import LoggedOp
from analyzer.values.bad_values import is_buffer
from analyzer.values.launches import ProcessKernels, kernels_of

_SAVED = "Saved tensor to "
_PREFIX = {"before": "before_launch_", "after": "after_launch_"}
_PREFIXES = tuple(_PREFIX.values())
_EXACT = 1_000_000  # larger integers are printed rounded (kernel_log.py)
_USUAL = "float32"
_NAMES_ONLY = (
    "the printer names kernels only: run with "
    "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 (values), or =1 (tensors in files)"
)
_NO_FILES = "its tensors were saved to files, which are not here: give their folder"
_OVERWRITTEN = "its tensors were saved to files that a later launch of the same kernel wrote again"
_BY_HAND = "a kernel that somebody wrote: give a function of its name (`--ops FILE`)"


class SavedFiles:
    """``.pt`` files of level 1, by name: ``before_launch_<kernel>_<argument>_<device>.pt``.

    A launch of the same kernel writes the same files again, so they belong to its last launch.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files: dict[str, Path] = {}
        for path in paths:
            for file in sorted(path.glob("*.pt")) if path.is_dir() else [path]:
                key = _key(file.name)
                if key is not None and (file == path or is_inside(path, file)):
                    self._files.setdefault(key, file)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._files)

    def find(self, event: str, kernel: str, arg: str) -> SavedTensor | None:
        """One tensor, null = there is no such file."""
        wanted = f"{_PREFIX[event]}{kernel}_{arg}"
        for name, path in self._files.items():
            rest = name.removeprefix(wanted)
            if name.startswith(wanted) and (rest == ".pt" or (rest.startswith("_") and _is_device(rest[1:]))):
                return read_saved(path).get(None)
        return None


def _is_device(text: str) -> bool:
    kind, _, ordinal = text.removesuffix(".pt").partition(":")
    return kind.isalpha() and (ordinal.isdecimal() or not ordinal)


def _key(name: str) -> str | None:
    """The name without what stands before it: PyTorch forgets the slash (``aoti_torchbefore_launch_...``)."""
    at = min((place for word in _PREFIXES if (place := name.find(word)) >= 0), default=-1)
    return name[at:] if at >= 0 and name.endswith(".pt") else None


def saved_files(analysis: Analysis, materials: Sequence[Path]) -> SavedFiles:
    """Those of the folders given, then those at the paths that the log names."""
    given = [path for path in materials if path.is_dir() or path.suffix == ".pt"]
    named: list[Path] = []
    if analysis.known.kernels.level() == 1:
        for one in analysis.loaded:
            for text in one.reader.matching([_SAVED])["text"]:
                path = Path(str(text).partition(_SAVED)[2].strip())
                if path.is_file():
                    named.append(path)
    return SavedFiles([*given, *named])


class _Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Which op of the plan wrote a buffer, and as which of its outputs."""

    number: int
    place: int
    kernel: str


class Launches:
    """Launches of one process as ops of a plan, and which of them wrote which buffer."""

    def __init__(self, analysis: Analysis, source: int, process: str, files: SavedFiles) -> None:
        kernels = kernels_of(analysis.known, source, process)
        assert kernels is not None
        self._kernels: ProcessKernels = kernels
        self._files = files
        self._prints = kernels.pairs()
        last = kernels.launches.group_by("kernel").agg(pl.col("id").max())
        self._last = dict(last.iter_rows())
        self._writers: dict[str, _Writer] = {}
        self._step: int | None = None

    def plan(self, op: LoggedOp, number: int) -> PlanOp:
        """One launch. Buffers that earlier ops of the plan wrote are linked to them."""
        plan = PlanOp(number=number, name=op.name, executor="torch", call=op.name)
        known = self._kernels.launches.filter(pl.col("id") == op.facts.ref.id)
        if known.is_empty():  # behind the first fault: what is printed there is not believed
            return msgspec.structs.replace(plan, why_not="launched after the device had failed")
        if op.facts.ref.step != self._step:  # names of buffers mean other memory in each execution
            self._step, self._writers = op.facts.ref.step, {}
        launch = self._kernels.launch(int(known["id"][0]))
        device = op.facts.ref.device or device_of(launch)
        tensors = self._tensors(launch, device)
        planned = _assumed(self._called(plan, launch, tensors), launch)
        written = [one for one in tensors if one.written and one.name not in _read(planned, tensors)]
        for place, one in enumerate(written):
            self._writers[one.name] = _Writer(number=number, place=place, kernel=launch.kernel)
        return msgspec.structs.replace(planned, outputs=tuple(one.tensor for one in written))

    def _called(self, plan: PlanOp, launch: KernelLaunch, tensors: Sequence[Named]) -> PlanOp:
        linked = [self._linked(one) for one in tensors]
        found = find_call(launch.kernel, linked)
        if found is None:
            scalars = self._scalars(launch)
            return msgspec.structs.replace(
                plan,
                executor="user",
                arguments=tuple([PlanArgument(name=one.name, tensor=one.tensor) for one in linked] + scalars),
                why_not=self._why_nothing(launch, tensors) or _BY_HAND,
            )
        why_not = found.why_not
        if why_not is not None and not tensors:
            why_not = self._why_nothing(launch, tensors) or why_not
        return msgspec.structs.replace(
            plan,
            call=found.call,
            overload=found.overload,
            arguments=found.arguments,
            stand_in=found.stand_in,
            why_not=why_not,
        )

    def _why_nothing(self, launch: KernelLaunch, tensors: Sequence[Named]) -> str | None:
        """Why no tensor of the launch is known."""
        if tensors or launch.level == 2:
            return None
        if launch.level == 3:
            return _NAMES_ONLY
        return _NO_FILES if self._last[launch.kernel] == launch.id or not self._files else _OVERWRITTEN

    def _linked(self, one: Named) -> Named:
        writer = self._writers.get(one.name)
        if writer is None or one.written:
            return one
        tensor = msgspec.structs.replace(one.tensor, from_op=writer.number, from_output=writer.place)
        return msgspec.structs.replace(one, tensor=tensor)

    def _scalars(self, launch: KernelLaunch) -> list[PlanArgument]:
        own = (pl.col("id") == launch.id) & (pl.col("event") == "before") & pl.col("value").is_not_null()
        rows = self._kernels.prints.filter(own).select("arg", "value").unique(maintain_order=True)
        return [PlanArgument(name=arg, text=value) for arg, value in rows.iter_rows()]

    def _tensors(self, launch: KernelLaunch, device: str) -> list[Named]:
        if launch.level == 1:
            return self._from_files(launch)
        found: list[Named] = []
        for one in launch.before:
            tensor = printed(one, device)
            if tensor is not None and all(one.name != each.name for each in found):
                written = self._is_written(launch, one)
                found.append(Named(name=one.name, tensor=tensor, written=written))
        return found

    def _is_written(self, launch: KernelLaunch, one: PrintedTensor) -> bool:
        """It changed in this launch or another one; a buffer that nobody wrote before holds no input."""
        if (role := self._prints.role(launch.kernel, one.name)) is not None:
            return role == "written" and not self._is_input(launch, one.name)
        return is_buffer(one.name) and not self._is_input(launch, one.name)

    def _is_input(self, launch: KernelLaunch, name: str) -> bool:
        """Another kernel of the plan wrote it. The same kernel writes it anew in each execution."""
        writer = self._writers.get(name)
        return writer is not None and writer.kernel != launch.kernel

    def _from_files(self, launch: KernelLaunch) -> list[Named]:
        """Of the last launch of a kernel: the files of the others are gone."""
        if self._last[launch.kernel] != launch.id:
            return []
        own = self._kernels.prints.filter((pl.col("id") == launch.id) & (pl.col("event") == "before"))
        found = []
        for arg in own["arg"].unique(maintain_order=True):
            saved = self._files.find("before", launch.kernel, arg)
            if saved is not None:
                tensor = PlanTensor(
                    shape=saved.shape,
                    dtype=saved.dtype,
                    device=saved.device or "cpu",
                    stride=saved.stride,
                    fidelity="recorded",
                    file=saved.file,
                )
                written = is_buffer(arg) and not self._is_input(launch, arg)
                found.append(Named(name=arg, tensor=tensor, written=written))
        return found


def _read(plan: PlanOp, tensors: Sequence[Named]) -> set[str]:
    """Names of the tensors that the call reads, whatever was said of them."""
    given = [(one.shape, one.values, one.file) for one in plan.tensors()] if plan.why_not is None else []
    return {one.name for one in tensors if (one.tensor.shape, one.tensor.values, one.tensor.file) in given}


def device_of(launch: KernelLaunch) -> str:
    """Told by a tensor, else by the kernel's name: the Python wrapper prints no device."""
    told = next((one.device for one in (*launch.before, *launch.after) if one.device), None)
    on_host = launch.kernel.startswith(("cpp_", "aoti_torch_cpu_"))
    return told or ("cpu" if on_host else "cuda:0")


def _assumed(plan: PlanOp, launch: KernelLaunch) -> PlanOp:
    """Says so where a type was not printed (observed.md 34) and was taken for the usual one."""
    unknown = sorted({one.name for one in launch.before if one.shape is not None and one.dtype is None})
    if not unknown or plan.why_not is not None:
        return plan
    what = f"{', '.join(unknown)} as {_USUAL}: the log does not print the type"
    return msgspec.structs.replace(plan, stand_in=f"{plan.stand_in}; {what}" if plan.stand_in else what)


def printed(one: PrintedTensor, device: str) -> PlanTensor | None:
    """A printed tensor, null = its shape was not printed.

    Values that are all there are recorded ones; else the range is statistics. Inf and NaN are texts among
    values, and no ends of a range.
    """
    if one.shape is None:
        return None
    whole = is_integer(one.dtype) or one.dtype == "bool"
    low, high, mean = (_finite(value, whole=whole) for value in (one.min, one.max, one.mean))
    exact = not whole or all(abs(value) < _EXACT for value in one.values or ())
    values = one.values if exact else None
    return PlanTensor(
        shape=one.shape,
        dtype=one.dtype or _USUAL,
        device=one.device or device,
        stride=one.stride,
        fidelity="recorded"
        if values is not None
        else "made"
        if low is None or high is None
        else "statistics",
        values=None if values is None else tuple(_value(value, whole=whole) for value in values),
        low=low,
        high=high,
        mean=None if mean is None else float(mean),
    )


def _finite(value: float | None, *, whole: bool) -> float | int | None:
    if value is None or not isfinite(value):
        return None
    if not whole:
        return value
    return int(value) if abs(value) < _EXACT else int(copysign(_at_least(abs(value)), value))


def _at_least(value: float) -> float:
    """What a number printed with six digits is at least: rounding must not put an index out of range."""
    return value - 0.5 * 10.0 ** (floor(log10(value)) - 5)


def _value(value: float, *, whole: bool) -> float | int | str:
    if not isfinite(value):
        return str(value)
    return int(value) if whole else value
