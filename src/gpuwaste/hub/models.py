"""The shapes of the hub's answers, as /openapi.json describes them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ErrorAnswer(Struct):
    """Any answer that is not 200."""

    error: Annotated[str, Meta(description="What is wrong and what to do, one line.")]


class RejectedRow(Struct):
    """A row that will never be taken."""

    line: Annotated[int, Meta(description="Line in the body; the envelope is 1.")]
    reason: str


class AckAnswer(Struct):
    """The acknowledgement of a batch, signed in the header Gpuwaste-Ack."""

    protocol: int
    batch_id: str
    accepted: int
    rejected: list[RejectedRow]


class LinkAnswer(Struct):
    """A link by which a user signs in to the pages."""

    url: Annotated[str, Meta(description="URL to open in a browser; its fragment is the secret, valid once.")]
    expires_s: Annotated[int, Meta(description="Seconds for which it is valid.")]


class BackupAnswer(Struct):
    """How a backup stands; one that is ready also has what its member backup.json says."""

    state: Literal["none", "copying", "ready", "failed"]
    error: Annotated[str, Meta(description="Why it failed.")] = ""
    bytes: Annotated[int, Meta(description="Size of the files in it.")] = 0
