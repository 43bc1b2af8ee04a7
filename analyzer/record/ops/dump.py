"""A ring read back, and its ops as lines of an op log in MAX's grammar (observed.md 2).

::

    [RECORD] STEP n=7
    [OP] LAUNCH aten::index_select [id=41]
    srv/app/serve.py:88:<module>
    srv/app/model.py:31:forward
    ;target=cuda:0;self=4x1000xfloat32;dim=0;index=17xint64;index.min=0;index.max=1000
    [OP] COMPLETE aten::index_select [id=41] target=cuda:0

``STEP`` stands in front of the first op of a step. The head of a record with frames ends in a blank.
An op that raised has no ``COMPLETE``.
"""

from __future__ import annotations

import heapq
import mmap
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from analyzer.errors import InputError
from analyzer.record.ops.copied import with_copied
from analyzer.record.ops.inputs import evidence, file_name
from analyzer.record.ops.marks_file import Marks, read_marks
from analyzer.record.ops.ring import HEADER, HEADER_BYTES, LENGTH, MAGIC, SLOT, VERSION
from analyzer.record.ops.settings import step_mark
from analyzer.record.trailer import render_line
from analyzer.schema import Value

_U16 = 0xFFFF
_RANGES = 500  # of one stream: the first ones are the suspects
_GONE = b"op\n;target=unknown"  # the text was overwritten: more distinct texts than the arena holds


class RingOp(Value):
    """One op of a ring. ``done_ns`` null = the call had not returned; ``inputs``: see ``inputs.py``.

    ``step``: calls of the outermost module up to it (``steps.py``); 0 = none yet. ``stream``
    and ``mark``: see ``marks_file.py``; null = it has no mark.
    """

    id: int
    name: str
    detail: str
    frames: list[str]
    launch_ns: int
    done_ns: int | None
    thread: int
    step: int = 0
    stream: int | None = None
    mark: int = 0
    inputs: bytes | None = None

    @property
    def device(self) -> str:
        """What ``target=`` says."""
        return self.detail.removeprefix(";target=").partition(";")[0]


class RingDump(Value):
    """A whole ring; ops by id. Those before ``ops[0].id`` are no longer in it. ``marks`` null = none."""

    pid: int
    started_ns: int
    ops: list[RingOp]
    marks: Marks | None = None


def is_ring(first: bytes) -> bool:
    """Whether a file that begins with these bytes is a ring."""
    return first.startswith(MAGIC)


def read_ring(path: Path) -> RingDump:
    """Read the ring of a process that runs or has died.

    Raises:
        InputError: Missing, or not a ring of this version.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, data)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise InputError(f"{path}: cannot be read as a ring of ops: {error}") from error


def _read(path: Path, data: mmap.mmap) -> RingDump:
    if len(data) < HEADER_BYTES:
        raise InputError(f"{path}: too short for a ring of ops")
    magic, version, pid, slots, texts, inputs, text_head, input_head, started_ns = HEADER.unpack_from(data)
    base = HEADER_BYTES + slots * SLOT.size
    if magic != MAGIC or version != VERSION or len(data) != base + texts + inputs:
        raise InputError(f"{path}: not a ring of ops of version {VERSION}")
    marks = read_marks(path)
    known: dict[int, bytes] = {}
    ops = []
    for at in range(HEADER_BYTES, base, SLOT.size):
        check, launch_ns, done_ns, op, frames, saved, thread, step, mark, again = SLOT.unpack_from(data, at)
        if not check or check != again:  # never used, or the process died inside the write
            continue
        for place in (op, frames):
            if place not in known:
                known[place] = _record(data, base, texts, text_head, place) or b""
        name, _, detail = (known[op] or _GONE).decode(errors="replace").partition("\n")
        ops.append(
            RingOp(
                id=check - 1,
                name=name,
                detail=detail,
                frames=known[frames].decode(errors="replace").splitlines(),
                launch_ns=launch_ns,
                done_ns=done_ns or None,
                thread=thread,
                step=step,
                stream=(mark & _U16) - 1 if mark else None,
                mark=mark >> 16,
                inputs=_inputs(_record(data, base + texts, inputs, input_head, saved), marks),
            )
        )
    ops.sort(key=lambda one: one.id)
    return RingDump(pid=pid, started_ns=started_ns, ops=ops, marks=marks)


def _inputs(blob: bytes | None, marks: Marks | None) -> bytes | None:
    return None if blob is None else with_copied(blob, marks)


def _record(data: mmap.mmap, base: int, size: int, head: int, place: int) -> bytes | None:
    """A record of an arena; null = none, or overwritten since."""
    if not place or head - place > size:
        return None
    start = base + place % size
    (length,) = LENGTH.unpack_from(data, start)
    return data[start + LENGTH.size : start + LENGTH.size + length]


def render_launch(op: RingOp) -> bytes:
    """The launch record without its last line end."""
    closing = op.detail + (evidence(op.inputs) if op.inputs else "")
    if op.stream:  # the first one is not told
        closing += f";stream={op.stream}"
    if op.frames:
        return "\n".join([f"[OP] LAUNCH {op.name} [id={op.id}] ", *op.frames, closing]).encode()
    return f"[OP] LAUNCH {op.name} [id={op.id}] {closing.removeprefix(';')}".encode()


def render_completion(op: RingOp) -> bytes:
    """The completion record without its line end."""
    return f"[OP] COMPLETE {op.name} [id={op.id}] target={op.device}".encode()


def render_events(
    ops: Sequence[RingOp], late: Sequence[RingOp] = (), step: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Records with their times in nanoseconds, in order of time, and marks where a step begins.

    Args:
        ops: By id; launch, and completion where there is one.
        late: Ops whose completion only is wanted.
        step: That of the last op before these.
    """
    launches = []
    for op in ops:
        if op.step > step:
            step = op.step
            launches.append((op.launch_ns, op.id, -1, step_mark(step)))
        launches.append((op.launch_ns, op.id, 0, render_launch(op)))
    done = [(op.done_ns, op.id, 1, render_completion(op)) for op in [*late, *ops] if op.done_ns is not None]
    for time_ns, _, _, text in heapq.merge(sorted(launches), sorted(done), key=itemgetter(0, 1, 2)):
        yield time_ns, text


def render_marks(dump: RingDump) -> Iterator[str]:
    """A line a stream: what the device had finished when the ring was read; none without marks.

    ::

        [RECORD] DONE stream=0 device=cuda:0 id=243 op=aten::mul left=244-260,262

    ``id``: the op up to which it finished all; missing = none of those that the ring holds. ``left``: those
    that it did not finish, in the order in which they were enqueued. ``graph``: the ops of a CUDA graph, as
    its last replay left them. ``none``: why there are no marks.
    """
    if dump.marks is None:
        return
    if dump.marks.why_not:
        yield render_line("DONE", {"none": dump.marks.why_not})
        return
    for one in dump.marks.streams:
        own = sorted((op for op in dump.ops if op.stream == one.stream), key=lambda op: op.mark)
        left = [op.id for op in own if op.mark > one.done]
        done = [op for op in own if op.mark <= one.done and op.id < min(left, default=op.id + 1)]
        last = max(done, key=lambda op: op.id, default=None)
        pairs = {
            "stream": one.stream,
            "device": f"cuda:{one.device}",
            "id": last.id if last else None,
            "op": last.name if last else None,
            "left": ranges(left),
            "graph": one.graph or None,
        }
        yield render_line("DONE", pairs)


def ranges(ids: Sequence[int]) -> str | None:
    """``244-260,262``: ids in their order, those that follow one another together; null = there are none."""
    parts: list[list[int]] = []
    for ident in ids:
        if parts and ident == parts[-1][1] + 1:
            parts[-1][1] = ident
        elif len(parts) < _RANGES:
            parts.append([ident, ident])
        else:
            break
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or None


def render_ring(path: Path) -> bytes:
    """The op log of a ring, without stamps.

    Raises:
        InputError: Not a ring.
    """
    dump = read_ring(path)
    marks = [line.encode() for line in render_marks(dump)]
    return b"".join(text + b"\n" for text in (*(text for _, text in render_events(dump.ops)), *marks))


def save_inputs(ops: Sequence[RingOp], folder: Path, prefix: str = "") -> int:
    """Write the saved inputs of each op as a ``.safetensors`` file of its own.

    Args:
        ops: Those without inputs are skipped.
        folder: Made if there is something to write.
        prefix: In front of the file names (``<prefix><id>.safetensors``).

    Returns:
        Number of files.

    Raises:
        OSError: They cannot be written.
    """
    with_inputs = [op for op in ops if op.inputs]
    if with_inputs:
        folder.mkdir(parents=True, exist_ok=True)
    for op in with_inputs:
        (folder / file_name(op.id, prefix)).write_bytes(op.inputs or b"")
    return len(with_inputs)
