"""The trial of a model: its conditions (section [models], checked), and the type of GET /v1/models/trial."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.advice.verdicts.hits import TARGETS
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.fields import Document, Utc
from gpuwaste.jobs.events.kinds.model import TargetEvidence

MARGIN: Final = 0.005  # of average precision: a smaller gain is not worth a change
CONFIDENCE: Final = 0.9  # the share of the draws in which a target is better by the margin


def checked_models(models: ModelsConfig) -> ModelsConfig:
    """Check the keys. Raises ConfigError."""
    unknown = [name for name in models.targets if name not in TARGETS]
    if unknown or not models.targets:
        raise ConfigError(f"[models] targets {list(models.targets)}: expected some of {', '.join(TARGETS)}")
    if models.min_outcomes < 1 or models.min_users < 2:  # noqa: PLR2004 one user has no interval
        raise ConfigError("[models] min_outcomes must be 1 or more, min_users 2 or more")
    return models


def every_s(models: ModelsConfig) -> float:
    """Return the seconds between two comparisons."""
    return max(models.compare_every_s, 1.0)


class TrialModel(Struct, kw_only=True, frozen=True):
    """A bundle."""

    name: str
    hash: Annotated[str, Meta(description="sha256 of the manifest, hex.")]
    created_utc: Annotated[int, Meta(description="When it was trained, UTC seconds.")]
    rows: Annotated[int, Meta(description="Jobs in its training data.")]


class TrialDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model trial` prints."""

    document: Literal["model-trial"] = "model-trial"
    generated: Utc
    cluster: str = ""
    renew: Annotated[bool, Meta(description="Whether the rule may change the model in use: [models] renew.")] = False
    champion: Annotated[TrialModel | None, Meta(description="The model in use; null: none.")] = None
    challenger: Annotated[TrialModel | None, Meta(description="The model on trial; null: none.")] = None
    since: Annotated[float | None, Meta(description="When the trial began, UTC seconds; null: no trial.")] = None
    comparison: Annotated[
        list[TargetEvidence], Meta(description="The model in use compared with the one on trial.")
    ] = []  # noqa: RUF012 copied
    decision: Annotated[str, Meta(description="Whether the rule promotes, and why or why not.")] = "no model on trial"
    against_baseline: Annotated[
        list[TargetEvidence], Meta(description="The model in use compared with the baseline.")
    ] = []  # noqa: RUF012 copied
    rollback: Annotated[str, Meta(description="Whether the rule rolls back, and why or why not.")] = ""
    changed: Annotated[Literal["", "promoted", "rolled back"], Meta(description="What this comparison changed.")] = ""
    error: Annotated[str, Meta(description="Why there is no newer comparison; empty: nothing.")] = ""
