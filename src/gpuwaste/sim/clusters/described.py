"""What a reader found: the model and the place of each part, so that an error can name file and line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.sim.cluster import ClusterModel

Kind = Literal["nodes", "partitions", "qos", "associations", "reservations", "outages", "failures", "settings"]
Place = tuple[Kind, int]


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """A model that nobody checked yet.

    `source` names the file or the program; `places` says where a part is described, by its kind and its index there.
    """

    model: ClusterModel
    source: str
    places: Mapping[Place, str] = field(default_factory=dict)

    def place(self, kind: Kind, index: int = 0) -> str:
        """Return where a part is described, the source where nothing finer is known."""
        return self.places.get((kind, index), self.source)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Name the place of a value that cannot be read: ParseError becomes ConfigError."""
    try:
        yield
    except ParseError as error:
        raise ConfigError(f"{place}: {error}") from error
