"""The bus: by type, in order, and one handler's error keeps nothing from the others."""

from dataclasses import dataclass

import pytest

from gpuwaste.core.bus import Bus


@dataclass(frozen=True)
class Ended:
    """Something ended."""

    number: int


@dataclass(frozen=True)
class EndedBadly(Ended):
    """A kind of its own."""


def test_handlers_get_their_type_in_the_order_of_subscription() -> None:
    """Each handler of the type is called once, in order; a subclass is another type, and nobody need listen."""
    bus, heard = Bus(), list[tuple[str, int]]()
    bus.subscribe(Ended, lambda event: heard.append(("first", event.number)))
    bus.subscribe(Ended, lambda event: heard.append(("second", event.number)))
    bus.subscribe(EndedBadly, lambda event: heard.append(("badly", event.number)))
    bus.publish(Ended(1))
    bus.publish(EndedBadly(2))
    bus.publish("nobody asked")
    assert heard == [("first", 1), ("second", 1), ("badly", 2)]


def test_an_error_reaches_the_publisher_after_every_handler() -> None:
    """The second handler runs although the first raises; of two errors the first is raised."""
    bus, heard = Bus(), list[int]()

    def fail(event: Ended) -> None:
        heard.append(event.number)
        raise ValueError(event.number + len(heard))

    bus.subscribe(Ended, fail)
    bus.subscribe(Ended, fail)
    with pytest.raises(ValueError, match=r"^11$"):
        bus.publish(Ended(10))
    assert heard == [10, 10]
