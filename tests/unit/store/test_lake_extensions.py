"""DuckDB's extensions for a lake: what is missing is named with the package that has it."""

import duckdb
import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.store.duckdb_connection import connect, load_extension


def test_a_missing_extension_names_the_package() -> None:
    """The message names our package, and what pip installs, of DuckDB's version."""
    with connect() as connection, pytest.raises(StoreError) as raised:
        load_extension(connection, "no_such")
    wanted = f"install the package gpuwaste-lake, or with pip duckdb-extension-no-such=={duckdb.__version__}"
    assert str(raised.value) == f"no extension no_such for a lake: {wanted}"
