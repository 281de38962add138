"""EventKind: one kind of event: its name, what it says, and the type of its data, from which its schema is made.

Data repeat fields of the types that they are made of (ActionEntry, Proposal): their schemas outlive these.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from gpuwaste.core.codec import Int64, convert
from gpuwaste.core.errors import ParseError


class OfRun(Struct, frozen=True):
    """The first fields of data about a run."""

    cluster: str
    job_id: Int64 = field(name="jobid")
    start: Annotated[Int64, Meta(description="UTC seconds.")]


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind; fields of its data are only added, so `version` is increased only where readers would have to change."""

    name: str
    about: str
    data: type[Any]
    version: int = 1

    @property
    def family(self) -> str:
        """The first word of the name: the topic of a broker."""
        return self.name.partition(".")[0]

    @property
    def schema_id(self) -> str:
        """The value of an event's `dataschema`."""
        return f"urn:gpuwaste:event:{self.name}:{self.version}"

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of the data."""
        found = msgspec.json.schema(self.data)
        about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": self.schema_id, "title": self.name}
        return {**about, "description": self.about, **found}

    def problem(self, data: object) -> str:
        """Return what is wrong with data of this kind, "" if nothing."""
        try:
            convert(data, self.data, self.name)
        except ParseError as error:
            return str(error)
        return ""
