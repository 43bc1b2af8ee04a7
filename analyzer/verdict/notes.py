"""What the conclusion says beside its statement: the kernel log, ranks side by side, messengers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from analyzer.knowledge import Knowledge
from analyzer.model import CollectiveState, FaultRecord
from analyzer.schema import Conclusion
from analyzer.tables.kinds import PEERS
from analyzer.verdict.driver_notes import with_kernel_log

_RANKS_SHOWN = 16
_NO_COLLECTIVE = frozenset({None, "SEND", "RECV", "COALESCED", "UNKNOWN"})  # two ranks differ by nature
_CHECKER = "_assert_async"
_PROBABILITIES = "probability tensor contains"
_NODE = "GPU node-"
_UNWRITTEN = "read of uninitialised memory"


def with_notes(conclusion: Conclusion, known: Knowledge, root: FaultRecord) -> Conclusion:
    """Add what other witnesses say about the root fault."""
    told = with_kernel_log(conclusion, known.records, root)
    notes = [*told.notes, *_of_ranks(known.collectives, root)]
    notes.extend(_of_nodes(root))
    notes.extend(_of_checker(root))
    notes.extend(_of_reader(root))
    return msgspec.structs.replace(told, notes=notes)


def _of_ranks(states: Sequence[CollectiveState], root: FaultRecord) -> list[str]:
    """Ranks side by side: the one that enqueued least did not come to the collective (formats.md 3.6)."""
    if root.kind not in PEERS or not states:
        return []
    ranks = {rank: _merged(states, rank) for rank in sorted({state.rank for state in states})}
    notes = [f"rank {rank}: {_progress(state)}" for rank, state in list(ranks.items())[:_RANKS_SHOWN]]
    reached = {rank: state.enqueued for rank, state in ranks.items() if state.enqueued is not None}
    if (other := _of_other_collective(states)) is not None:
        notes.append(other)
    if len(reached) > 1 and len(set(reached.values())) > 1:
        least = min(reached.values())
        behind = [str(rank) for rank, number in reached.items() if number == least]
        name = "rank" if len(behind) == 1 else "ranks"
        notes.append(f"{name} {', '.join(behind)} enqueued least (up to {least}): look there first")
    elif other is None and (len(ranks) > 1 or len(reached) < 2):
        notes.append("a rank that is missing here may be the one that did not come: compare all ranks")
    return notes


def _of_other_collective(states: Sequence[CollectiveState]) -> str | None:
    """Ranks that wait in another collective than the rest of their group: they never meet.

    Only what hung at the same time is compared: one collective of each rank, the first that timed out.
    """
    for group in dict.fromkeys(state.group for state in states):
        waits: dict[int, tuple[str, int | None]] = {}
        for state in states:
            if state.group == group and state.operation not in _NO_COLLECTIVE:
                waits.setdefault(state.rank, (state.operation or "", state.sequence))
        counts = Counter(waits.values())
        if len(counts) < 2:
            continue
        (most, count), *_ = counts.most_common(1)
        if count <= len(waits) / 2:
            told = "; ".join(f"rank {rank} in {_collective(wait)}" for rank, wait in sorted(waits.items()))
            return f"the ranks wait in different collectives ({told}): their order differs from rank to rank"
        odd = [(rank, wait) for rank, wait in sorted(waits.items()) if wait != most]
        who = ", ".join(f"rank {rank} waits in {_collective(wait)}" for rank, wait in odd[:_RANKS_SHOWN])
        return f"{who}, {count} others in {_collective(most)}: look there first, it made other calls or fewer"
    return None


def _collective(wait: tuple[str, int | None]) -> str:
    operation, sequence = wait
    return operation if sequence is None else f"{operation} {sequence}"


def _merged(states: Sequence[CollectiveState], rank: int) -> CollectiveState:
    """All that is known of a rank, the first line of it."""
    own = [state for state in states if state.rank == rank]
    first = own[0]
    for state in own[1:]:
        values = {
            name: getattr(state, name)
            for name in ("enqueued", "completed", "sequence", "operation")
            if getattr(first, name) is None
        }
        first = msgspec.structs.replace(first, **values)
    return first


def _progress(state: CollectiveState) -> str:
    at = f"hung in {state.operation or 'a collective'}"
    at += f" {state.sequence}" if state.sequence is not None else ""
    enqueued = f", last enqueued {state.enqueued}" if state.enqueued is not None else ""
    completed = f", last completed {state.completed}" if state.completed is not None else ""
    return f"{at}{enqueued}{completed} (line {state.line})"


def _of_checker(root: FaultRecord) -> list[str]:
    """PyTorch's assert kernels look at values that other kernels made: a messenger, like a NaN check."""
    place = (root.location.function if root.location else None) or ""
    if root.kind == "device_assert" and _CHECKER in place and _PROBABILITIES not in root.text:
        return [f"{place} only checks a condition: what made the values that it looked at ran before it"]
    if _PROBABILITIES not in root.text:
        return []
    who = place if _CHECKER in place else "the sampler"
    made = "the NaN, infinity or negative number was made upstream (logits, temperature, softmax)"
    return [
        f"{who} only checks: {made}",
        "torch.isfinite(logits).all() before the softmax tells on which side of it the values went bad",
    ]


def _of_reader(root: FaultRecord) -> list[str]:
    """Who reads memory that was never written is the messenger of who should have written it."""
    if root.name != _UNWRITTEN:
        return []
    return ["the kernel only reads: what should have written this memory did not, or wrote less of it"]


def _of_nodes(root: FaultRecord) -> list[str]:
    """ROCm counts HSA nodes, processors included (formats.md 3.17)."""
    if root.vendor != "amd" or _NODE not in root.text:
        return []
    node = root.text.partition(_NODE)[2].partition(" ")[0]
    return [f"node-{node} counts HSA nodes, processors included: it is not GPU {node} (rocminfo maps it)"]
