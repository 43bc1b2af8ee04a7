"""What of a recording is lost, said when it begins and again at the end: who reads it later was not there."""

from __future__ import annotations

from collections.abc import Callable


class Losses:
    """Bytes that are on no disk, with the reasons.

    ``tell`` says one thing to who watches. Each reason is told once: a full disk stays full for long.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Nothing is lost yet."""
        self.lost_bytes = 0
        self._tell = tell
        self._reasons: dict[str, None] = {}

    def note(self, why: str, lost_bytes: int = 0) -> None:
        """Something cannot be kept; at the first time of a reason it is said."""
        self.lost_bytes += lost_bytes
        if why not in self._reasons:
            self._reasons[why] = None
            self._tell(f"{why}; the command goes on")

    def told(self) -> str | None:
        """For the end of the recording; null = all is there."""
        if not self._reasons:
            return None
        reasons = "; ".join(self._reasons)
        if not self.lost_bytes:
            return reasons
        return f"{self.lost_bytes} bytes of the log could not be written: {reasons}"
