"""The base of a daemon's parts: threads that do one step after the other, waits after failures, and a bus."""

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from gpuwaste.core.clock import Clock
from gpuwaste.core.log_event import BUG

AFTER_DEFECT_S: Final = 60.0
_DOUBLINGS: Final = 30  # more than any bound here allows, and far below a float's overflow
_T = TypeVar("_T")


class Worker:
    """Calls `step` repeatedly on its own thread; `step` returns the seconds until the next call.

    None waits for `wake`, which otherwise ends a wait early. A defect in a step is logged and does not end the thread.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        clock: Clock,
        *,
        last: Callable[[], object] = lambda: None,
        patience_s: float = 5.0,
    ) -> None:
        """`last` is called on the thread when it ends; `stop` waits `patience_s` for that."""
        self.stopping = threading.Event()
        self._step = step
        self._clock = clock
        self._last = last
        self._patience_s = patience_s
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._wait_s: float | None = 0.0

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self, first_s: float | None = 0.0) -> None:
        """Start the thread; the first step runs after `first_s`."""
        self._wait_s = first_s
        self._thread.start()

    def wake(self) -> None:
        """Run the next step now, or as soon as the one in flight is over."""
        self._wake.set()

    def end(self) -> None:
        """End the thread after the step in flight, without waiting for that."""
        self.stopping.set()
        self._wake.set()

    def stop(self, timeout_s: float | None = None) -> None:
        """End the thread; one that hangs longer is abandoned, it is a daemon thread."""
        self.end()
        if self._thread.is_alive():
            self._thread.join(self._patience_s if timeout_s is None else timeout_s)

    def turn(self) -> float | None:
        """Do one step on the calling thread, as the worker's thread does. Raises nothing."""
        try:
            return self._step()
        except Exception as error:  # noqa: BLE001 a defect in one step must not end the thread for good
            BUG.log(error, what=f"step of thread {self._thread.name}")
            return AFTER_DEFECT_S

    def _run(self) -> None:
        while True:
            if self._wait_s is None:
                self._wake.wait()
            elif self._wait_s > 0:
                self._clock.wait(self._wake, self._wait_s)
            self._wake.clear()
            if self.stopping.is_set():
                break
            self._wait_s = self.turn()
        self._last()


def backoff_s(failures: int, first_s: float, most_s: float) -> float:
    """Return the seconds to wait: `first_s` after one failure in a row, twice that after two, at most `most_s`."""
    return min(most_s, first_s * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS))


class Bus:
    """Subscribe while the program is set up; publish from any thread after that."""

    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[Any], object]]] = {}

    def subscribe(self, kind: type[_T], handler: Callable[[_T], object]) -> None:
        """Have `handler` called with every event of exactly this type."""
        self._handlers.setdefault(kind, []).append(handler)

    def publish(self, event: object) -> None:
        """Call the handlers on this thread, in the order in which they subscribed.

        A handler that raises does not keep the event from the others; then the first error is raised.
        """
        errors: list[Exception] = []
        for handler in self._handlers.get(type(event), ()):
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 raised below
                errors.append(error)
        if errors:
            raise errors[0]
