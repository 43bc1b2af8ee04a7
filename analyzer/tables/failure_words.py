"""What kind of failure the words of an unknown printer tell of, as data. The first row that fits counts."""

from __future__ import annotations

import re

from analyzer.schema import FaultKind

_ROWS: tuple[tuple[FaultKind, tuple[str, ...]], ...] = (
    (
        "no_kernel_image",
        (
            *(r"\bfor GPU arch\b", r"\bgfx[0-9a-f]{3,4}\b", r"\bsm_[0-9]{2,3}", "no kernel image"),
            *(r"\b(?:compute|cuda) capabilit", "only (?:applicable|supported|available) on"),
            *("unsupported (?:gpu|architecture|target|device)", "gpu.{0,30}not supported"),
        ),
    ),
    (
        "out_of_memory",
        (
            *("out of memory", r"\boom\b", "bad_alloc", "can(?:no|')t allocate", "failed to allocate"),
            *("memory exhausted", "not enough (?:memory|space)", "no space left", "insufficient memory"),
            *("allocation (?:failed|failure)", "heap limit"),
        ),
    ),
    ("hang_timeout", (r"timed? ?-?out\b", "deadline exceeded", "not responding")),
    (
        "peer_lost",
        (
            *("connection (?:reset|refused|closed|lost|aborted)", "broken pipe", "unreachable"),
            *("remote (?:process|end|peer)", "peer (?:closed|died)"),
        ),
    ),
    (
        "configuration",
        (
            *("no such file", "(?:can(?:no|')t|could not|failed to) (?:open|read|find|load|parse)"),
            *("undefined symbol", "not found", "permission denied", "in use", "unrecogni[sz]ed"),
            *("unknown (?:option|argument|model|architecture)", "invalid (?:option|config|port|model)"),
            *("incompatible", "mismatch", "unsupported", "not supported", "insufficient driver"),
            *("driver version", "unresolved", "redefinition", "missing"),
        ),
    ),
)
_PATTERNS = tuple((kind, re.compile(rf"(?i){'|'.join(words)}")) for kind, words in _ROWS)


def kind_of_words(text: str) -> FaultKind:
    """The kind that the words of an error tell; ``unknown`` if nothing tells."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "unknown")
