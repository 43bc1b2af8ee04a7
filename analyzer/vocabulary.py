"""The words of the result, and the values that everything else is made of."""

from __future__ import annotations

from typing import Literal, dataclass_transform

import msgspec
from msgspec import StructMeta

FaultKind = Literal[
    "illegal_address",
    "misaligned_address",
    "invalid_address_space",
    "launch_failure",
    "illegal_instruction",
    "device_assert",
    "ecc_error",
    "device_lost",
    "out_of_memory",
    "nan",
    "input_check",
    "invalid_argument",
    "invalid_configuration",
    "no_kernel_image",
    "too_many_resources",
    "library_status",
    "kernel_raised",
    "configuration",
    "host_segfault",
    "host_abort",
    "hang_timeout",
    "peer_lost",
    "unknown",
]
Trust = Literal["exact", "late"]
Role = Literal["root", "cascade", "teardown", "bystander", "advice"]
CauseClass = Literal["software", "hardware", "memory", "configuration", "peer"]
Confidence = Literal["proven", "confirmed", "likely", "ranked", "undecided", "none"]
TimingBasis = Literal["device", "host", "none"]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _ValueMeta(StructMeta):
    """Makes every subclass of ``Value`` frozen and keyword-only, also in the eyes of type checkers."""

    def __new__(  # noqa: PYI034 (mypy allows no Self in a metaclass)
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        *,
        forbid_unknown_fields: bool = False,  # of what people write by hand
    ) -> _ValueMeta:
        return super().__new__(
            mcs,
            name,
            bases,
            namespace,
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=forbid_unknown_fields,
        )


class Value(msgspec.Struct, metaclass=_ValueMeta):
    """Base of all result values: immutable and keyword-only."""


class SourceFrame(Value):
    """One Python (or Mojo) frame. ``text`` is the source line if the log printed it."""

    file: str
    line: int
    function: str
    text: str | None = None


class TensorInfo(Value):
    """Shape, dtype and device of one operand. A ``None`` dimension is dynamic.

    ``role``: input, output, unknown. What follows it is known only where a log prints values. ``name``: of
    the argument; ``values``: of a small tensor, flat, in the order printed. ``"nan"``, ``"inf"`` and
    ``"-inf"`` are text: JSON has no such numbers.
    """

    shape: list[int | None]
    dtype: str
    device: str | None = None
    role: str = "input"
    name: str | None = None
    stride: list[int] | None = None
    elements: int | None = None
    min: float | int | str | None = None
    max: float | int | str | None = None
    mean: float | int | str | None = None
    values: list[float | int | str] | None = None
