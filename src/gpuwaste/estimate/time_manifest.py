"""manifest.json of a bundle of step times: the types of GPU in it, what each rests on, and its files' sha256."""

import json
from typing import Annotated, Final, Self

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.time_features import BLOCKS
from gpuwaste.estimate.time_model import FitSupport

SCHEMA: Final = 1
FEATURES: Final = tuple(f"{name}:{width}" for name, width in BLOCKS)
GPU_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,62}\Z"
_Gpu = Annotated[str, Meta(pattern=GPU_NAME)]


class TimesManifest(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The whole file; the arrays of a type are in GPU.npz."""

    name: str
    created_utc: int
    types: Annotated[dict[_Gpu, FitSupport], Meta(min_length=1, max_length=64)]
    files: dict[str, str]
    features: tuple[str, ...] = FEATURES
    """What programs are compared by; a bundle with other blocks is refused."""
    schema: int = SCHEMA

    @property
    def origin(self) -> str:
        """Where a bundle of step times is from: each is a site's own."""
        return "site"

    @property
    def rows(self) -> int:
        """Programs measured, of all types together."""
        return sum(grounds.programs for grounds in self.types.values())

    def to_json(self) -> bytes:
        """Return the file: keys sorted, so that equal bundles have equal manifests."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Read a manifest; `where` names it in errors. Raises ParseError."""
        what = f"{where}: not the manifest of a bundle of step times"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{what}: {error}") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("features") != list(FEATURES):
            raise ParseError(f"{what} of this version of gpuwaste: train again with gpuwaste estimate train")
        return convert(data, cls, what)


def file_of(gpu: str) -> str:
    """Return the file with the arrays of a type."""
    return f"{gpu}.npz"
