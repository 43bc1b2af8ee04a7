"""What GPU runtimes call their errors: names and sentences out of the vendors' headers, as data.

A sentence that only one runtime says tells by itself what failed. Others are words of everybody (``out of
memory``, ``invalid argument``): they count where the line names the runtime as well.
"""

from __future__ import annotations

import re
from functools import cache

from analyzer.model import FaultSite
from analyzer.schema import FaultKind, Value
from analyzer.tables.codes import CODES, by_name, by_text, vendor_of
from analyzer.tables.statuses import further_meaning, library_of, name_pattern

_BENIGN = frozenset({600, 704})  # answers to a query, not failures
# Numbers of errors whose sentence only CUDA and HIP say.
_OWN_WORDS = frozenset(
    {9, 35, 36, 46, 98, 100, 101, 200, 209, 214, 218, 220, 226, 700, 701, 702, 710, 714, 715, 717, 718, 719}
    | {720, 721, 802, 803, 804, *range(900, 909)}
)
_RUNTIME = re.compile(
    r"(?i)(?<![a-z])(?:cuda|hip|rocm|nvrtc|gpu ?assert)(?![a-z])"
    r"|\b(?:cu|hip|cuda)[A-Z]\w+ ?\(|\bcuda[A-Z_]\w+"
)
# Of NCCL and RCCL (nccl.h): name, words of ``ncclGetErrorString``, kind, where.
_NCCL: tuple[tuple[str, str, FaultKind, FaultSite], ...] = (
    ("ncclUnhandledCudaError", "unhandled cuda error", "library_status", "sync"),
    ("ncclSystemError", "unhandled system error", "library_status", "host"),
    ("ncclInternalError", "internal error - please report this issue to the NCCL developers",
     "library_status", "host"),
    ("ncclInvalidArgument", "", "invalid_argument", "host"),
    ("ncclInvalidUsage", "", "invalid_argument", "host"),
    ("ncclRemoteError", "remote process exited or there was a network error", "peer_lost", "host"),
)  # fmt: skip
_NAMES = (
    r"(?<![\w.])(?:cuda|hip)Error(?!NotReady|String|_t\b|Name|PeerAccessAlreadyEnabled)[A-Z]\w+"
    r"|(?<![\w.])CUDA_ERROR_(?!NOT_READY)[A-Z0-9_]+"
)
# Other runtimes in their own words.
_SENTENCES: tuple[tuple[str, FaultKind, FaultSite], ...] = (
    ("Caused GPU Address Fault Error (0000000b:", "illegal_address", "sync"),  # Metal
    ("Caused GPU Hang Error (0000000", "hang_timeout", "sync"),
    ("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "out_of_memory", "host"),
    ("Impacting Interactivity (0000000e:", "hang_timeout", "sync"),
    ("VUID-vkQueueSubmit", "invalid_argument", "host"),
    ("Native API failed. Native API returns", "library_status", "sync"),  # SYCL
)


# What a line holds that can name one: the beginnings of names, and the runtime's own word for error.
_WORDS = (
    *("cudaError", "hipError", "CUDA_ERROR_", "_STATUS_", "NVRTC_ERROR_", "NVJITLINK_ERROR_", "CUFFT_"),
    *("HIPFFT_", "rocblas_status_", "rocsparse_status_", "miopenStatus", "CL_INVALID_", "CL_OUT_OF_"),
    *("_PROGRAM_FAILURE", "_RESULT_ERROR_", "PI_ERROR_", "VK_ERROR_", "NRT_", "ACL_ERROR_", "NVVM_ERROR_"),
    *("NVML_ERROR_", "HIPRTC_ERROR_", "CUDA error", "CUDA Error", "cuda error", "CUDA ERROR", "CUDA failure"),
    *("HIP error", "CUDA driver error", "CUDA runtime error", "hip error", "cudaMalloc", "hipMalloc"),
    "misaligned address",  # of sanitizers too, who name no runtime
)


class Phrase(Value):
    """What a runtime said. ``at``: where it begins in the line; ``name``, ``code``: null = not told."""

    at: int
    words: str
    kind: FaultKind
    site: FaultSite
    vendor: str | None = None
    name: str | None = None
    code: int | None = None


@cache
def _pattern() -> re.Pattern[str]:
    texts = [row.text for row in CODES if row.code not in _BENIGN]
    texts += [words for _, words, *_ in _NCCL if words] + [words for words, *_ in _SENTENCES]
    # a name may be that of a word in another one: the longest first
    told = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    nccl = "|".join(name for name, *_ in _NCCL)
    return re.compile(rf"(?P<name>{_NAMES}|{name_pattern()}|\b(?:{nccl})\b)|(?P<text>\b(?i:{told})(?!\w))")


def gates() -> tuple[str, ...]:
    """Literals of all phrases; the words of everybody come in through the runtime's own word for error."""
    own = [row.text for row in CODES if row.code in _OWN_WORDS]
    nccl = [name for name, *_ in _NCCL] + [words for _, words, *_ in _NCCL if words]
    return (*own, *_WORDS, *nccl, *(words for words, *_ in _SENTENCES))


def find_phrase(text: str) -> Phrase | None:
    """The first error in a line that a runtime names; null = there is none."""
    for found in _pattern().finditer(text):
        phrase = _of_name(found) if found["name"] else _of_text(found, text)
        if phrase is not None:
            return phrase
    return None


def _of_name(found: re.Match[str]) -> Phrase | None:
    name, at = found.group(), found.start()
    row = by_name(name)
    if row is not None:
        site: FaultSite = "host" if row.site == "A" else "sync"
        return Phrase(
            at=at, words=name, kind=row.kind, site=site, vendor=vendor_of(name), name=name, code=row.code
        )
    known = next((one for one in _NCCL if one[0] == name), None)
    if known is not None:
        return Phrase(at=at, words=name, kind=known[2], site=known[3], name=name)
    library = library_of(name)
    if library is None:  # of CUDA or HIP, newer than the table
        return Phrase(at=at, words=name, kind="unknown", site="sync", vendor=vendor_of(name), name=name)
    means = further_meaning(name)
    place: FaultSite = "host" if means.site == "launch" else means.site
    return Phrase(at=at, words=name, kind=means.kind, site=place, vendor=library.vendor, name=name)


def _of_text(found: re.Match[str], text: str) -> Phrase | None:
    words, at = found.group(), found.start()
    row = by_text(words)
    if row is not None:
        around = text[:at] + text[found.end() :]
        if row.code not in _OWN_WORDS and _RUNTIME.search(around) is None:
            return None
        amd = re.search(r"(?i)(?<![a-z])(?:hip|rocm)(?![a-z])|\bhip[A-Z]", text) is not None
        site: FaultSite = "host" if row.site == "A" else "sync"
        return Phrase(
            at=at, words=words, kind=row.kind, site=site, vendor="amd" if amd else "nvidia", code=row.code
        )
    for _, said, kind, place in _NCCL:
        if said and said.lower() == words.lower():
            return Phrase(at=at, words=words, kind=kind, site=place)
    for said, kind, place in _SENTENCES:
        if said.lower() == words.lower():
            return Phrase(at=at, words=words, kind=kind, site=place)
    return None
