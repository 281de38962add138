"""DuckDB's signed extensions for lakes, from the Python packages that carry them."""

from importlib import resources
from pathlib import Path
from typing import Final

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.store.cursor import reason

_PACKAGES: Final = {"httpfs": "gpuwaste-lake-s3"}


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension from the file that is installed. Raises StoreError without one, and where DuckDB refuses it."""
    file = _file(name)
    try:
        connection.execute(f"LOAD {quoted(file)}")
    except duckdb.Error as error:
        raise StoreError(f"{file}: {reason(error)}") from error


def quoted(text: object) -> str:
    """Return a text as SQL has it."""
    return "'" + str(text).replace("'", "''") + "'"


def _file(name: str) -> Path:
    try:
        folder = resources.files(f"duckdb_extension_{name}")
    except ModuleNotFoundError as error:
        package = f"duckdb-extension-{name.replace('_', '-')}"
        ours = _PACKAGES.get(name, "gpuwaste-lake")
        wanted = f"the package {ours}, or with pip {package}=={duckdb.__version__}"
        raise StoreError(f"no extension {name} for a lake: install {wanted}") from error
    return Path(str(folder)) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
