"""Evidence against an op: small named rules, each with its weight in one table.

Weights are natural log-odds: 2.5 means about twelve times as likely as without this piece. They say how
the public fault reports of formats.md 9 are distributed (custom kernels, gathers and paged caches far above
vendor matmul and elementwise work), not how sure we are; the share over the window is what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import Reason, Value
from analyzer.suspects.index_values import bad_index_of
from analyzer.suspects.same_inputs import Key, key_of
from analyzer.tables.families import CUSTOM, families
from analyzer.tables.indexing import BY_OP
from analyzer.tables.kinds import ACCESS, BAD_ADDRESS

WEIGHTS = {
    "address: custom": 2.5,  # formats.md 9: rows 15, 22, 32, 34, 55-60: user or fused custom kernels
    "address: paged_kv": 1.5,
    "address: index": 1.5,
    "address: embedding": 1.2,
    "address: moe": 1.2,
    "address: attention": 1.0,
    "address: sampling": 0.5,
    "address: quantization": 0.5,
    "address: collective": 0.3,
    "address: unknown": 0.0,
    "address: conv": -0.5,
    "address: rope": 0.0,
    "address: copy": -0.7,
    "address: softmax": -1.2,
    "address: norm": -1.2,
    "address: reduction": -1.2,
    "address: nan_domain": -1.5,
    "address: matmul": -1.5,  # vendor matmul: shapes are checked before the launch
    "address: elementwise": -1.5,
    "address: layout": -1.5,
    "assert: index": 2.5,
    "assert: embedding": 2.5,
    "assert: sampling": 2.0,
    "assert: paged_kv": 1.5,
    "assert: custom": 1.5,
    "assert: moe": 1.0,
    "nan: nan_domain": 2.5,
    "nan: softmax": 1.5,
    "nan: norm": 1.5,
    "nan: custom": 1.0,
    "nan: quantization": 1.0,
    "nan: attention": 0.5,
    "novel": 2.0,  # the name never ran in a sound step
    "index operand": 0.7,  # takes integers that can leave the extent of another operand
    "bad index": 6.0,  # recorded: read or copied before the launch, in stream order
    "same inputs": -4.0,  # their writer is the one of a launch that a proof clears
    "checked": -3.0,
    "huge": 1.5,  # 2^31 elements: 32-bit index arithmetic wraps (formats.md 9: 47-49)
    "empty": 1.0,  # zero-size operand (formats.md 9: 46)
    "odd alignment": 0.7,
}
_GROUPS = {"device_assert": "assert", "nan": "nan"}
_INTEGER = (
    "si64",
    "si32",
    "ui64",
    "ui32",
    "si16",
    "ui16",
    "i64",
    "i32",
    "int64",
    "int32",
    "uint32",
    "uint64",
)
_TEMPERING = frozenset({"norm", "softmax", "reduction", "matmul", "copy"})  # "add" stands in too many names
_NAMED_SO = 0.3  # of what its name says beside: custom__paged_store above custom__bias
_INT32_ELEMENTS = 2**31
_VECTOR_ELEMENTS = 4  # 128-bit loads of 32-bit values


class Context(Value):
    """What the rules may look at besides the op: the fault, and how many sound launches came before."""

    fault: FaultRecord
    launches_before: int
    sound: frozenset[Key] = frozenset()


Rule = Callable[[OpFacts, Context], Iterator[Reason]]


def family_against_kind(op: OpFacts, context: Context) -> Iterator[Reason]:
    """Some families fail in some ways far more often than others."""
    group = _GROUPS.get(context.fault.kind, "address" if context.fault.kind in ACCESS else None)
    if group is None:
        return
    known = [
        (WEIGHTS[key], family) for family in families(op.leaves) if (key := f"{group}: {family}") in WEIGHTS
    ]
    if not known:
        return
    weight, family = max(known)
    if family == CUSTOM:  # what its name says it does tempers it: custom__rms_norm beside a gather
        weight += min([0.0, *(other for other, name in known if name in _TEMPERING)])
        weight += _NAMED_SO * max([0.0, *(other for other, name in known if name != CUSTOM)])
    word = family.replace("_", " ")
    kind = context.fault.kind.replace("_", " ")
    how = "often" if weight > 1 else "sometimes" if weight > 0 else "rarely"
    yield Reason(
        evidence="family",
        text=f"{word} ops {how} cause {kind}",
        weight=weight,
        lines=[op.launch_line],
    )


def novelty(op: OpFacts, context: Context) -> Iterator[Reason]:
    """What never ran before is more suspect than what has run soundly many times."""
    if op.novel:
        yield Reason(
            evidence="novelty",
            text=f"never launched in the {context.launches_before} launches before the window",
            weight=WEIGHTS["novel"],
            lines=[op.launch_line],
        )
    elif op.novel is False:
        yield Reason(
            evidence="history",
            text=f"launched {_times(op.count_before)} before without a fault",
            weight=0.0,
            lines=[op.launch_line],
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def index_operand(op: OpFacts, context: Context) -> Iterator[Reason]:
    """An integer operand beside a data operand is a way to leave its extent."""
    if context.fault.kind not in ACCESS and context.fault.kind != "device_assert":
        return
    inputs = [tensor for tensor in op.tensors if tensor.role == "input" and tensor.shape]
    integer = [tensor for tensor in inputs if tensor.dtype in _INTEGER]
    if integer and len(integer) < len(inputs):
        shape = "x".join("?" if d is None else str(d) for d in integer[0].shape)
        yield Reason(
            evidence="index_operand",
            text=f"takes {shape} {integer[0].dtype} values that can index another operand",
            weight=WEIGHTS["index operand"],
            lines=[op.launch_line],
        )


def shape_edges(op: OpFacts, context: Context) -> Iterator[Reason]:
    """Sizes at which index arithmetic or vector loads go wrong."""
    if context.fault.kind not in ACCESS:
        return
    for tensor in op.tensors:
        dims = [dim for dim in tensor.shape if dim is not None]
        if len(dims) < len(tensor.shape):
            continue
        text = "x".join(map(str, dims))
        if 0 in dims:
            yield _edge("empty", f"operand {text} has no elements", op)
        elif prod(dims) >= _INT32_ELEMENTS:
            yield _edge("huge", f"operand {text} has 2^31 elements or more (32-bit index arithmetic)", op)
        elif context.fault.kind == "misaligned_address" and dims and dims[-1] % _VECTOR_ELEMENTS:
            yield _edge("odd alignment", f"rows of {text} do not start at vector boundaries", op)


def _edge(name: str, text: str, op: OpFacts) -> Reason:
    return Reason(evidence=name.replace(" ", "_"), text=text, weight=WEIGHTS[name], lines=[op.launch_line])


def checked_indices(op: OpFacts, context: Context) -> Iterator[Reason]:
    """What checks its indices on the device fails by an assert: a bad address accuses others."""
    name = op.ref.name.removeprefix("aten::")
    if context.fault.kind in BAD_ADDRESS and name != op.ref.name and name in BY_OP:
        weight = WEIGHTS["checked"]
        text = "checks its indices on the device: a bad one would be reported as an assert"
        yield Reason(evidence="checked", text=text, weight=weight, lines=[op.launch_line])


def same_inputs(op: OpFacts, context: Context) -> Iterator[Reason]:
    """What read the same integers soundly before cannot have met a bad one now."""
    if key_of(op) in context.sound:
        text = "read the same index values at an earlier launch that was sound"
        weight = WEIGHTS["same inputs"]
        yield Reason(evidence="same_inputs", text=text, weight=weight, lines=[op.launch_line])


def index_values(op: OpFacts, context: Context) -> Iterator[Reason]:  # noqa: ARG001 - wrong whatever failed
    """A recorded index outside of what it indexes."""
    bad = bad_index_of(op)
    if bad is not None:
        weight = WEIGHTS["bad index"]
        yield Reason(evidence="index_values", text=bad.words, weight=weight, lines=[op.launch_line])


RULES: tuple[Rule, ...] = (
    family_against_kind,
    novelty,
    index_operand,
    index_values,
    checked_indices,
    same_inputs,
    shape_edges,
)


def collect(op: OpFacts, context: Context) -> list[Reason]:
    """All evidence of all rules, one of a kind, strongest first."""
    strongest: dict[str, Reason] = {}
    for rule in RULES:
        for reason in rule(op, context):
            if reason.evidence not in strongest or reason.weight > strongest[reason.evidence].weight:
                strongest[reason.evidence] = reason
    return sorted(strongest.values(), key=lambda reason: -reason.weight)
