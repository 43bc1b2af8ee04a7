"""What an API call that returned an error can have met (formats.md 4), by its name. No witness by itself."""

from __future__ import annotations

from analyzer.model import FaultSite

# Calls that launch, or that ask what the last launch said.
_LAUNCHES = (
    "LaunchKernel",
    "LaunchCooperative",
    "GraphLaunch",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "hipGetLastError",
    "hipPeekAtLastError",
)


def site_of_call(call: str) -> FaultSite:
    """``launch`` for a launch or its check; any other call only met the error of earlier work."""
    if not call:
        return "unknown"
    return "launch" if any(word in call for word in _LAUNCHES) else "sync"
