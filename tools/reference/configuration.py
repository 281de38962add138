"""configuration.md and etc/gpuwaste.toml, from core.config.describe_config()."""

import json
from itertools import groupby
from textwrap import wrap
from typing import Any, Final

from gpuwaste.core.config import DEFAULT_PATH, Config, describe_config, site_keys
from tools.reference.markdown import code, document, table

_TYPES: Final = {"str": "string", "int": "whole number", "float": "number", "bool": "true or false"}
_UNITS: Final = {
    "_s": "seconds",
    "_pct": "percent",
    "_ratio": "0 to 1",
    "_days": "days",
    "_bytes": "bytes",
    "_coverage": "0 to 1",
}
_INTRO: Final = f"""
One TOML file, `{DEFAULT_PATH}`, for every program on a host; `--config FILE` names another. Files
`{DEFAULT_PATH}.d/*.toml` are read over it in the order of their names, key by key (for `--config FILE`: `FILE.d`); put
the site's own keys there, so that no upgrade asks about the packaged file. Hidden files and other endings are not read.
A key that is left out has its default; an unknown section or key is an error, which names the most similar known one.
`gpuwaste config check` checks that daemons and submit plugins can use the files, `gpuwaste config show` prints every
key with its value, and file and line of each value that is set. Daemons read them when they start, and again at
SIGHUP; which keys need no restart: [the services](../how-to/services.md).
[etc/gpuwaste.toml](../../etc/gpuwaste.toml) begins with the keys that a site must look at
({", ".join(code(key) if section == "common" else code(f"{section}.{key}") for section, key, _, _ in site_keys())}), and
contains every key with its default, as comments.
"""


def unit_of(key: str, kind: str) -> str:
    """Return a key's unit by the end of its name, else its type in words."""
    unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
    return unit or _TYPES.get(kind, "list of strings")


def page() -> str:
    """Return the page: a table for each section."""
    parts = [_INTRO]
    for section, rows in groupby(describe_config(), key=lambda row: row[0]):
        parts.append(f"## [{section}]\n\n{_about(section)}")
        parts.append(
            table(
                ("key", "default", "unit or type", "meaning"),
                [(code(key), code(_toml(default)), unit_of(key, kind), text) for _, key, kind, default, text in rows],
            )
        )
    return document("Configuration", *parts)


def example() -> str:
    """Return the commented example: what a site must look at, then every key with its text, unit and default."""
    lines = [
        f"# gpuwaste: every key with its default. Put what differs into a file of {DEFAULT_PATH}.d.",
        "#",
        *(f"# {line}".rstrip() for line in _first()),
        "",
    ]
    for section, rows in groupby(describe_config(), key=lambda row: row[0]):
        lines += [f"# {_about(section)}", f"[{section}]"]
        for _, key, kind, default, text in rows:
            lines += [f"# {line}" for line in wrap(f"{text} ({unit_of(key, kind)})", 110)]
            lines += [f"#{key} = {_toml(default)}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _first() -> list[str]:
    """Return the lines of a site's own file, with the keys that every site must look at."""
    keys = site_keys()
    lines = [f"The {len(keys)} keys that a site must look at, as site.toml in that directory, the same on all hosts:"]
    for section, rows in groupby(keys, key=lambda row: row[0]):
        lines += ["", f"    [{section}]"]
        for _, key, value, text in rows:
            lines += [f"    # {line}" for line in wrap(text, 100)]
            lines.append(f"    {key} = {_toml(value)}")
    return [*lines, "", "All keys by section:"]


def _about(section: str) -> str:
    return str(type(getattr(Config(), section)).__doc__)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it: JSON's strings, numbers, booleans and lists are TOML as well."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)
