"""Texts of failed allocations, and what their numbers say (formats.md 3.4, ``oom.lark``)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.numbers import need_bytes, need_integer
from analyzer.schema import Value
from analyzer.speech.explained import is_explained

if TYPE_CHECKING:
    from lark.tree import ParseTree

GRAMMAR = "oom"
Printer = Literal["torch", "cupy", "xla", "ggml", "nccl", "vllm", "killed"]
MARKS: tuple[tuple[str, Printer], ...] = (
    (" out of memory. Tried to allocate ", "torch"),
    ("Out of memory allocating ", "cupy"),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate ", "xla"),
    ("RESOURCE_EXHAUSTED: Out of memory allocating ", "xla"),
    ("Malloc failed: out of memory", "ggml"),
    ("Failed to CUDA ", "nccl"),
    ("No available memory for the cache blocks", "vllm"),
    ("Out of memory: Killed process ", "killed"),
    ("Out of memory: Kill process ", "killed"),
    ("Memory cgroup out of memory: Kill", "killed"),
    ("oom-kill:constraint=", "killed"),
)
_OF_CONTAINER = ("Memory cgroup", "CONSTRAINT_MEMCG")
OF_CONTAINER = "memory of the host, not of the GPU: its container's limit was reached"
OF_HOST = "memory of the host, not of the GPU: the whole host was short of it"
_UNITS = {"bytes": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ADVICE = (" If reserved ", " See documentation", "  See documentation", "If reserved but")
_RAISE = " raise "
_OTHERS_SHARE = 0.25  # other processes hold so much of the device: they are worth a word
_POOLS_SHARE = 0.5
_UNUSED_SHARE = 0.03
_UNUSED_REQUESTS = 2
_CLAUSE_ENDS = (". ", "; ", "B ", "B, ", "s ")  # of a sentence, of a size
_APIS = {"CUDA": "nvidia", "HIP": "amd"}


class OomText(Value):
    """One failed allocation. Sizes in bytes; null = the text does not say.

    ``unallocated``: reserved by the caching allocator and not in use. ``allowed``: a limit of the process.
    ``others``: what other processes hold.
    """

    printer: Printer
    text: str
    requested: int | None = None
    total: int | None = None
    free: int | None = None
    own: int | None = None
    others: int | None = None
    allocated: int | None = None
    unallocated: int | None = None
    pools: int | None = None
    allowed: int | None = None
    device: str | None = None
    vendor: str | None = None
    pid: int | None = None

    @property
    def reading(self) -> str:
        """What the numbers say, for a reader; empty = nothing that the text itself does not."""
        return "; ".join(part for part in (self._why(), self._who()) if part)

    def _why(self) -> str:
        if self.printer == "killed":
            limited = any(word in self.text for word in _OF_CONTAINER)
            return OF_CONTAINER if limited else OF_HOST
        if self.requested is None:
            return ""
        asked = f"{show(self.requested)} asked for ({self.requested} bytes)"
        if self.allowed is not None and (self.allocated is None or self._above_limit()):
            return f"{asked}: the limit of the process, {show(self.allowed)}, is used up"
        if self._is_fragmented():
            return (
                f"{asked}: fragmentation, {show(self.unallocated or 0)} are reserved and unused,"
                " but in pieces or pools that do not fit"
            )
        if self.free is not None and self.free >= self.requested:
            return f"{asked}, {show(self.free)} free: not exhausted as a whole, the driver refused"
        if self.free is not None:
            return f"{asked}, {show(self.free)} free: exhausted"
        return asked

    def _is_fragmented(self) -> bool:
        """A few MiB of rest are in every pool: what is unused has to be a share of the device."""
        unused = self.unallocated or 0
        enough = unused >= _UNUSED_REQUESTS * (self.requested or 0)
        return unused > 0 and enough and unused >= _UNUSED_SHARE * (self.total or 0)

    def _above_limit(self) -> bool:
        used = (self.allocated or 0) + (self.unallocated or 0)
        return self.allowed is not None and used + (self.requested or 0) > self.allowed

    def _who(self) -> str:
        if self.others and self.total and self.others >= _OTHERS_SHARE * self.total:
            return f"other processes hold {show(self.others)}"
        if self.pools and self.allocated and self.pools >= _POOLS_SHARE * self.allocated:
            return f"pools of captured graphs hold {show(self.pools)}"
        return ""


@lru_cache(maxsize=4096)
def read_oom(line: str) -> OomText | None:
    """Read the first failed allocation of a line; null = the line is of another family.

    Raises:
        GrammarError: It begins like one, but cannot be read.
    """
    found = [(at, mark, printer) for mark, printer in MARKS if (at := line.find(mark)) >= 0]
    if not found:
        return None
    at, mark, printer = min(found)
    if _RAISE in line[:at]:  # a traceback shows the source line
        return None
    if printer == "torch":
        at = line.rfind(" ", 0, at) + 1
        at += max(0, line[at:].find("CUDA"), line[at:].find("HIP"))  # glued to what stands before
    elif printer == "ggml":
        call = max(line.rfind("cuda", 0, at), line.rfind("hip", 0, at))
        at = max(line.rfind("allocating ", 0, at), call if "allocating " not in line[:at] else -1)
        if at < 0:
            return None
    elif printer == "nccl" and not line[at + len(mark) :].startswith(("malloc", "calloc", "host alloc")):
        return None
    if is_explained(line[:at]):
        return None
    return _read(printer, line[at:].rstrip(" \t\r\"'"))  # a field of a structured log ends in a quote


def show(size_bytes: int) -> str:
    """``2.50 GiB``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.2f} {unit}"
    return f"{size_bytes} bytes"


def _read(printer: Printer, text: str) -> OomText:
    from lark import Token

    sizes: dict[str, list[int]] = {}
    fields: dict[str, list[str]] = {}
    for item in _parse(printer, text).iter_subtrees_topdown():  # type: ignore[no-untyped-call]
        for child in item.children:
            if isinstance(child, Token) and child.type == "SIZE":
                sizes.setdefault(str(item.data), []).append(_bytes(token_text(child)))
            elif isinstance(child, Token):
                fields.setdefault(child.type, []).append(token_text(child))
    counts = [need_bytes(one.replace(",", ""), 1) for one in fields.get("BYTES", [])]
    numbers = [need_integer(one) for one in fields.get("INT", [])]
    pid = numbers[0] if printer == "killed" else None
    has_device = printer == "ggml" or (printer == "torch" and "total" in sizes)
    return OomText(
        printer=printer,
        text=_without_advice(text),
        requested=_first(sizes, "requested", printer)
        if sizes.keys() & {"requested", printer}
        else _nth(counts, 0),
        total=_first(sizes, "total"),
        free=_first(sizes, "free"),
        own=_first(sizes, "own"),
        others=_others(sizes),
        allocated=_first(sizes, "allocated") if "allocated" in sizes else _nth(counts, 1),
        unallocated=_unallocated(sizes),
        pools=_first(sizes, "pools"),
        allowed=_first(sizes, "allowed") if "allowed" in sizes else _limit(counts),
        device=f"gpu:{numbers[0]}" if has_device and numbers else None,
        vendor=_APIS.get(fields["API"][0]) if "API" in fields else None,
        pid=pid,
    )


def _parse(printer: Printer, text: str) -> ParseTree:
    """Parse a text; one that is cut off or has a clause of a version to come, up to the clause before."""
    try:
        return parse(GRAMMAR, text, printer)
    except GrammarError as error:
        ends = sorted({text.rfind(end, 0, error.position) for end in _CLAUSE_ENDS}, reverse=True)
        for end in ends:
            if end > 0 and (read := _parse_or_none(printer, text[: end + 1])) is not None:
                return read
        raise


def _parse_or_none(printer: Printer, text: str) -> ParseTree | None:
    try:
        return parse(GRAMMAR, text, printer)
    except GrammarError:
        return None


def _first(sizes: dict[str, list[int]], *names: str) -> int | None:
    return next((sizes[name][0] for name in names if name in sizes), None)


def _nth(counts: list[int], at: int) -> int | None:
    return counts[at] if at < len(counts) else None


def _limit(counts: list[int]) -> int | None:
    """CuPy's limit; 0 = it has none."""
    return _nth(counts, 2) or None


def _others(sizes: dict[str, list[int]]) -> int | None:
    """What other processes hold. In a container the driver counts the process itself among them.

    Its pid outside is another one: together they would then hold more than the device has.
    """
    held = sizes.get("other", [])
    total = _first(sizes, "total")
    mine = (_first(sizes, "allocated") or 0) + (_unallocated(sizes) or 0)
    if total is not None and mine + sum(held) > total and (own := [one for one in held if one >= mine]):
        held = list(held)
        held.remove(min(own))
    return sum(held) if held else None


def _unallocated(sizes: dict[str, list[int]]) -> int | None:
    """Said outright, or (older texts) what is reserved less what is allocated."""
    if "unallocated" in sizes:
        return sizes["unallocated"][0]
    if "reserved" in sizes and "allocated" in sizes:
        return max(0, sizes["reserved"][0] - sizes["allocated"][0])
    return None


def _bytes(text: str) -> int:
    number = text.rstrip("bytesKMGTiB ")
    unit = text[len(number) :].strip()
    return need_bytes(number, _UNITS[unit if unit in _UNITS else unit[0]])


def _without_advice(text: str) -> str:
    ends = [at for words in _ADVICE if (at := text.find(words)) > 0]
    return text[: min(ends, default=len(text))].rstrip()
