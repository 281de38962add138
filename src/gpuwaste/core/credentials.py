"""Paths of secrets that systemd hands to a service: LoadCredential= and $CREDENTIALS_DIRECTORY, see systemd.exec(5).

The directory is another one for each service, exists while the service runs, and can be read by its user alone.
"""

import os
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

_VARIABLE: Final = "CREDENTIALS_DIRECTORY"
PREFIX: Final = f"${_VARIABLE}/"
_T = TypeVar("_T")


def expanded(text: str) -> str:
    """Return a value with the directory of this service's credentials in it; as it was in any other process."""
    directory = os.environ.get(_VARIABLE, "")
    return text.replace(PREFIX, f"{directory}/") if directory.startswith("/") else text


def with_credentials(config: _T) -> _T:
    """Return a configuration of sections whose texts name this service's credentials by their paths."""
    changed: dict[str, Any] = {}
    for section in fields(config):  # type: ignore[arg-type]
        table = getattr(config, section.name)
        texts = {key.name: getattr(table, key.name) for key in fields(table)}
        own = {name: expanded(text) for name, text in texts.items() if isinstance(text, str) and PREFIX in text}
        if own:
            changed[section.name] = replace(table, **own)
    return replace(config, **changed) if changed else config  # type: ignore[type-var]
