"""Parts of a daemon: what each runs, measures and reloads; the daemon is a loop over them and names none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:  # commands import this file, but none of these
    from prometheus_client.metrics_core import Metric

    from gpuwaste.core.config import Config
    from gpuwaste.core.worker import Worker

_T = TypeVar("_T")
Reloads = Mapping[tuple[str, ...], Callable[["Config"], None]]


class Part:
    """One part of a daemon. A class overrides only what it has."""

    late: ClassVar[bool] = False
    """Whether its workers start later, when other parts have what they need."""

    @classmethod
    def part_of(cls, parts: "Parts") -> Self:
        """Return the part; its constructor gets other parts and the daemon's objects from `parts`."""
        make: Callable[[Parts], Self] = cls
        return make(parts)

    def before_start(self) -> None:
        """Do what must happen before any worker runs: start a server, note what was interrupted."""

    @property
    def workers(self) -> "Sequence[Worker]":
        """The threads to start: the attribute `worker`, where there is one."""
        worker = getattr(self, "worker", None)
        return () if worker is None else (worker,)

    @property
    def reloads(self) -> Reloads:
        """The functions that put changed keys ("hub.staff_groups") in force."""
        return {}

    def counted(self) -> "Iterable[Metric]":
        """Yield the metric families of a daemon, whether it serves or stands by."""
        return ()

    def metrics(self) -> "Iterable[Metric]":
        """Yield the metric families of a serving daemon, read at each scrape."""
        return ()

    def close(self) -> None:
        """End everything that is not a worker."""


class Parts:
    """A daemon's parts by their classes, each made once, when it is first requested."""

    def __init__(self, *given: object) -> None:
        """Take the objects that parts need: the configuration, the clock, the store, the connection to the host."""
        self._made: dict[type, Any] = {type(one): one for one in (*given, self)}
        self._making: list[type] = []
        self._kinds: Sequence[type[Part]] = ()

    def declare(self, kinds: Sequence[type[Part]]) -> None:
        """Take the classes of all parts: a request for a base class of one of them returns that one."""
        self._kinds = kinds

    def get(self, kind: type[_T]) -> _T:
        """Return the part, or the given object, of a class or its subclass."""
        found: _T | None = self._made.get(kind)
        if found is None:
            found = self.find(kind)
        self._made[kind] = self._make(kind) if found is None else found
        return self._made[kind]  # type: ignore[no-any-return] # of that class

    def find(self, kind: type[_T]) -> _T | None:
        """Return the given object of a class, None where there is none."""
        return next((one for one in self._made.values() if isinstance(one, kind)), None)

    def all(self) -> list[Part]:
        """Return the parts made so far, in the order in which they were made."""
        return list(dict.fromkeys(one for one in tuple(self._made.values()) if isinstance(one, Part)))

    def make(self, kinds: "Iterable[type[Part]]") -> None:
        """Make parts, in this order."""
        for kind in kinds:
            self.get(kind)

    def start(self, late_s: float = 0.0) -> None:
        """Start the parts made so far; the workers of late ones start after `late_s`."""
        made = self.all()
        for part in made:
            part.before_start()
        for part in made:
            for worker in part.workers:
                worker.start(late_s if part.late else 0.0)

    def close(self) -> None:
        """End the parts, the last one first: a part ends before those that it uses."""
        for part in reversed(self.all()):
            for worker in part.workers:
                worker.stop()
            part.close()

    def reloads(self) -> "dict[tuple[str, ...], Callable[[Config], None]]":
        """Return the functions of every part that put changed keys in force."""
        return {keys: apply for part in self.all() for keys, apply in part.reloads.items()}

    def _make(self, kind: type) -> Any:
        if not issubclass(kind, Part):
            raise TypeError(f"{kind.__name__} is not a part and was not given: this is a bug in gpuwaste")
        if (
            declared := next((one for one in self._kinds if one is not kind and issubclass(one, kind)), None)
        ) is not None:
            return self.get(declared)
        if kind in self._making:
            circle = " -> ".join(one.__name__ for one in [*self._making, kind])
            raise TypeError(f"parts need each other: {circle}: this is a bug in gpuwaste")
        self._making.append(kind)
        try:
            return kind.part_of(self)
        finally:
            self._making.pop()
