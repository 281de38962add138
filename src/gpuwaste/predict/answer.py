"""A prediction as the hub answered it, read back: for commands that go on with it."""

from collections.abc import Mapping
from typing import Any

from gpuwaste.core.errors import ParseError
from gpuwaste.predict.prediction import Change, Reason, TargetPrediction


def targets_of(document: Mapping[str, Any]) -> tuple[TargetPrediction, ...]:
    """Return the targets of a document of /v1/predict. Raises ParseError."""
    try:
        return tuple(_target(item) for item in document["targets"])
    except (KeyError, TypeError) as error:
        raise ParseError(f"the prediction does not have this version's format: {error}: is the hub newer?") from error


def changes_of(document: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the smaller requests of a document of /v1/predict. Raises ParseError."""
    names = ("option", "text", "before", "after")
    try:
        return tuple(Change(*(item[name] for name in names)) for item in document["changes"])
    except (KeyError, TypeError) as error:
        raise ParseError(f"the prediction does not have this version's format: {error}: is the hub newer?") from error


def _target(item: Mapping[str, Any]) -> TargetPrediction:
    reasons = tuple(Reason(r["feature"], r["value"], r["usual"], r["effect"], r["text"]) for r in item["reasons"])
    return TargetPrediction(
        item["target"], item["source"], item["basis"], item["p"], item["level"], item["quantiles"], reasons
    )
