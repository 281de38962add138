"""The document of findings about the size of a user's requests."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Utc
from gpuwaste.ledger.reports.report_types import FindingRow

MAX_ROWS: Final = 20_000
_Name = Annotated[str, Meta(max_length=256)]


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


class SizeRow(Struct, kw_only=True, frozen=True):
    """A smaller request that the last runs of such jobs would have fitted."""

    user: _Name
    partition: Annotated[_Name, Meta(description="Where the newest of these runs was; its limits allow the request.")]
    name: Annotated[_Name, Meta(description="Of the jobs, without what changes from run to run.")]
    gpus: Annotated[int, Meta(ge=1, le=1 << 20)]
    gpu_type: _Name
    option: Annotated[str, Meta(max_length=512, description="The options of sbatch.")]
    runs: Annotated[int, Meta(ge=1, description="The runs compared.")]
    time_limit_s: Annotated[int | None, Meta(description="The time limit that `option` requests, if any.")] = None
    mem_b: Annotated[int | None, Meta(description="The memory that `option` requests, if any.")] = None
    cpus: Annotated[int | None, Meta(description="The CPUs of the job that `option` requests, if any.")] = None


class SizeTableAnswer(Document, kw_only=True, frozen=True):
    """The smaller requests of all users, for advisors; of one job the smaller GPU is first."""

    rows: Annotated[list[SizeRow], Meta(max_length=MAX_ROWS)]
