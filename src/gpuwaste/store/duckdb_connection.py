"""The only place that opens DuckDB: no connection of gpuwaste downloads or loads an extension by itself.

By default DuckDB fetches an extension from its vendor's server when a statement seems to need one. What a lake needs
is loaded by the path of an installed file (`gpuwaste.store.lake_extensions`), which these settings allow.

Nor does a name that is no table mean a variable of Python's: the search for one would drop a Ctrl-C of meanwhile, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

_SETTINGS: Final = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


def connect(
    path: Path | str = ":memory:", options: Mapping[str, str] | None = None, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a file, or a database in memory, with more of DuckDB's settings in `options`.

    Raises duckdb.Error.
    """
    config: dict[str, str | bool | int | float | list[str]] = {**_SETTINGS, **(options or {})}
    return duckdb.connect(str(path), read_only=read_only, config=config)  # noqa: TID251 the one place
