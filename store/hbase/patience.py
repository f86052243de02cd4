"""How long a scan waits for its next rows: longer each time that none came.

HBase's gateway sends nothing until it has a row. A scan below a bound in time, over millions of cells that are newer,
gets no byte for minutes, and a new scanner that is opened after a timeout begins at the same row: with the same timeout
it would never get through, however often it is repeated.
"""

from __future__ import annotations


class Patience:
    """Of one scan: ``wait_ms`` at first, twice as long each time it was not enough, up to ``wait_ms_max``.

    It stays as long as it has become: where a scan was slow once, it is so again, and what is given up before its end
    goes on in the gateway. All the waits for a row that does not come take less than three times ``wait_ms_max``; the
    longest is repeated for as long as any failing call is (``unavailable_after_ms``).
    """

    def __init__(self, wait_ms: int, wait_ms_max: int) -> None:
        self.wait_ms = wait_ms
        self._wait_ms_max = wait_ms_max

    def grow(self) -> bool:
        """Wait longer from now on; whether that is still possible."""
        if self.wait_ms >= self._wait_ms_max:
            return False
        self.wait_ms = min(2 * self.wait_ms, self._wait_ms_max)
        return True
