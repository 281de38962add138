"""The document of findings about the size of a user's requests."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Utc
from gpuwaste.ledger.reports.report_types import FindingRow


class RightSize(Struct, kw_only=True, frozen=True):
    """A finding about the size of the requests of such jobs."""

    cluster: str
    name: Annotated[str, Meta(description="Of the jobs, without what changes from run to run.")]
    gpus: int
    gpu_type: str
    finding: FindingRow


class RightSizesDocument(Document, kw_only=True, frozen=True):
    """The findings about the size of a user's requests."""

    document: Literal["right_sizes"] = "right_sizes"
    schema: int = 1
    generated: Utc
    user: str
    sizes: list[RightSize]
