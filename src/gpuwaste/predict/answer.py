"""A prediction as the hub answered it, read back: for commands that go on with it."""

from collections.abc import Mapping
from typing import Any, TypeVar

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.predict.prediction import Change, TargetPrediction

_T = TypeVar("_T")


def targets_of(document: Mapping[str, Any]) -> tuple[TargetPrediction, ...]:
    """Return the targets of a document of /v1/predict. Raises ParseError."""
    return _read(document, "targets", tuple[TargetPrediction, ...])


def changes_of(document: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the smaller requests of a document of /v1/predict. Raises ParseError."""
    return _read(document, "changes", tuple[Change, ...])


def _read(document: Mapping[str, Any], name: str, kind: type[_T]) -> _T:
    try:
        return convert(document.get(name), kind, name)
    except ParseError as error:
        raise ParseError(
            f"the prediction has another form than this version knows: {error}: is the hub newer?"
        ) from error
