"""Lines with which a process tells its own end, or somebody its exit code (formats.md 3.21).

A panic, an uncaught exception of C++, a fatal error of a compiler or of a language's runtime holds its cause
in its own words. An exit code does not: what failed stands above it.
"""

from __future__ import annotations

import re

from analyzer.speech.mentions import is_code

_TOLD = (
    r"thread '[^']*' (?:\([0-9]+\) )?panicked at ",  # Rust
    r"panic: ",  # Go
    r"fatal error: (?!\w+\.h\b)",  # Go's runtime, compilers without a place
    r"terminate called after throwing an instance of ",
    r"libc\+\+abi: terminating",
    r"\*\*\* Terminating app due to uncaught exception",
    r"FATAL ERROR: ",  # Node
    r"LLVM ERROR: ",
    r"(?:ptxas|nvcc|nvlink|fatbinary|clang(?:\+\+)?|cc1plus|ld\.lld) ?(?:fatal|: fatal error) *: ?",
    r"Fatal error in (?:P?MPI_\w+|internal_\w+|v8)",
    r"\*\*\* An error occurred in MPI_",
    r"uncaught exception: ",
    r"Unhandled exception[.:]",
    r"# A fatal error has been detected by the Java Runtime Environment",
)
_SELF = re.compile(rf"^(?:\[[\w.-]+:[0-9]+\] )?(?:{'|'.join(_TOLD)})")
_EXIT = re.compile(
    r"(?i)\b(?:exit(?:ed|s|ing)? (?:with )?(?:non-?zero )?(?:return )?(?:code|status)|exitcode|return code"
    r"|exited with|exits with)[ :=(\"']{0,3}(?:code )?([0-9]{1,3})\b(?!\.[0-9])"
)
_UNTOLD = re.compile(r"(?i)\b(?:if|when|would|no|never|expected|means?|possible|each|any|every|or)\b|\?")
GATES = (
    *("panicked at ", "panic: ", "fatal error: ", "terminate called after throwing", "abi: terminating"),
    *("Terminating app due to", "FATAL ERROR: ", "LLVM ERROR: ", "ptxas fatal", "nvcc fatal", "nvlink fatal"),
    *(": fatal error: ", "Fatal error in ", "*** An error occurred in MPI_", "uncaught exception: "),
    *("Java Runtime Environment", "Unhandled exception", "exit code", "exitcode", "exit status"),
    *("return code", "exited with", "Exited with", "exits with", "exit with code", "Exit code"),
)


def tells_own_end(text: str) -> bool:
    """Whether a process says in this line that it ends, and of what."""
    return _SELF.search(text.strip()) is not None and not is_code(text)


def exit_code(text: str) -> int | None:
    """The code with which somebody says that a process ended; null = none is told, or it is talked of."""
    found = _EXIT.search(text)
    if found is None or _UNTOLD.search(text) or is_code(text):
        return None
    return int(found[1])
