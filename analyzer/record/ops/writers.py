"""Which logged op wrote an integer tensor last: an op that faults on an index is often only the messenger.

Told by the address of the storage. Runs in the recorded program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST = 1 << 14  # storages that are remembered; forgetting one costs a hint
# What a tensor refuses to say is left out (``describe.py``).
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError)


class Writers:
    """Ids of ops by the storage that they wrote."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def wrote(self, ident: int, tensors: Iterable[Any]) -> None:
        """An op wrote these tensors, or may have."""
        if len(self._known) >= MOST:
            self._known.clear()
        for one in tensors:
            address = _address(one)
            if address:
                self._known[address] = ident

    def of(self, tensor: Any) -> int | None:
        """The op that wrote a tensor last; null = not logged, or forgotten."""
        return self._known.get(_address(tensor))

    def forget(self) -> None:
        """Ids begin anew."""
        self._known.clear()


def _address(tensor: Any) -> int:
    """0 = it has no memory."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except _REFUSALS:
        return 0
