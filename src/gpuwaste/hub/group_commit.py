"""One commit for all batches that wait: a commit costs about the same for one node's rows as for fifty nodes'."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from gpuwaste.core.errors import StoreError

MAX_ROWS: Final = 1000  # of a commit of several batches: memory, and how long those behind it wait
_Row = TypeVar("_Row")


@dataclass(slots=True, eq=False)
class _Waiting(Generic[_Row]):
    """A batch whose thread waits for its commit."""

    rows: Sequence[_Row]
    changed: int | None = None
    error: Exception | None = None

    @property
    def settled(self) -> bool:
        return self.changed is not None or self.error is not None


class GroupCommit(Generic[_Row]):
    """Lets threads put batches; the first that reaches the store also commits those that arrived meanwhile."""

    def __init__(
        self,
        upsert: Callable[[Sequence[_Row]], int],
        committed: Callable[[int], None] | None = None,
        most_rows: int = MAX_ROWS,
    ) -> None:
        """`upsert` commits rows and returns how many changed; `committed` is called with the batches of each commit."""
        self._most_rows = most_rows
        self._upsert = upsert
        self._committed = committed or (lambda _: None)
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._queue: deque[_Waiting[_Row]] = deque()

    @property
    def waiting(self) -> int:
        """How many batches wait for a commit that has not begun."""
        with self._lock:
            return len(self._queue)

    def put(self, rows: Sequence[_Row]) -> int:
        """Return once the rows are committed; raises what the commit of these rows raised.

        The rows that a commit changed are counted once: the call for one batch returns their number, the others 0.
        """
        mine = _Waiting(rows)
        with self._lock:
            self._queue.append(mine)
        with self._turn:
            while not mine.settled:
                self._commit(self._next_group())
        if mine.error is not None:
            raise mine.error
        return mine.changed or 0

    def _next_group(self) -> list[_Waiting[_Row]]:
        """Return the oldest batches that fit into one commit, one at least."""
        with self._lock:
            group = [self._queue.popleft()]
            size = len(group[0].rows)
            while self._queue and size + len(self._queue[0].rows) <= self._most_rows:
                group.append(self._queue.popleft())
                size += len(group[-1].rows)
        return group

    def _commit(self, group: Sequence[_Waiting[_Row]]) -> None:
        """Commit a group; where that fails each batch on its own, so that none fails because of another's rows."""
        try:
            changed = self._upsert([row for waiting in group for row in waiting.rows])
        except StoreError as error:
            if len(group) == 1:
                group[0].error = error
            for waiting in group if len(group) > 1 else ():
                self._commit([waiting])
        except Exception as error:  # noqa: BLE001 each thread of the group must receive it
            for waiting in group:
                waiting.error = error
        else:
            self._committed(len(group))
            for waiting in group:
                waiting.changed = 0
            group[0].changed = changed
