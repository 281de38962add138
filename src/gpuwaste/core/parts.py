"""Parts of a daemon: what each runs, measures and takes over; the daemon is a loop over them and names none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:  # commands import this file, and none of these
    from prometheus_client.metrics_core import Metric

    from gpuwaste.core.config import Config
    from gpuwaste.core.worker import Worker

_T = TypeVar("_T")
Reloads = Mapping[tuple[str, ...], Callable[["Config"], None]]


class Part:
    """One part of a daemon. What a class does not say of itself it does not have."""

    late: ClassVar[bool] = False
    """Whether its workers begin some time after the start, when others have what they need."""

    @classmethod
    def of(cls, parts: "Parts") -> Self:
        """Return the part, made of others and of what the daemon was given."""
        raise NotImplementedError

    @property
    def workers(self) -> "Sequence[Worker]":
        """The threads to start."""
        return ()

    @property
    def reloads(self) -> Reloads:
        """What puts changed keys ("hub.staff_groups") in force."""
        return {}

    def metrics(self) -> "Iterable[Metric]":
        """Yield its families."""
        return ()

    def stop(self) -> None:
        """End what is no worker."""


class Parts:
    """A daemon's parts by their classes, each made once, when it is first asked for."""

    def __init__(self, *given: object) -> None:
        """Take what parts are made of: the configuration, the clock, the store, where the host is met."""
        self._made: dict[type, Any] = {type(one): one for one in given}
        self._making: list[type] = []

    def get(self, kind: type[_T]) -> _T:
        """Return the part of a class, or what was given of it, of a subclass too."""
        found = self._made.get(kind)
        if found is None:
            found = next((one for one in self._made.values() if isinstance(one, kind)), None)
        if found is None:
            found = self._make(kind)
        self._made[kind] = found
        return found

    def all(self) -> list[Part]:
        """Return the parts that are made, in the order in which they were."""
        return [one for one in dict.fromkeys(self._made.values()) if isinstance(one, Part)]

    def _make(self, kind: type) -> Any:
        if not issubclass(kind, Part):
            raise TypeError(f"{kind.__name__} is no part, and was not given: this is a bug in gpuwaste")
        if kind in self._making:
            circle = " -> ".join(one.__name__ for one in [*self._making, kind])
            raise TypeError(f"parts need each other: {circle}: this is a bug in gpuwaste")
        self._making.append(kind)
        try:
            return kind.of(self)
        finally:
            self._making.pop()
