"""The bus of a program: what happens in one part reaches the parts that asked for it, by its type, in this process."""

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Bus:
    """Subscribe while the program is put together; publish from any thread after that."""

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
