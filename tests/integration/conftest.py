"""One PostgreSQL for the tests of a session that ask for it."""

from collections.abc import Iterator

import pytest

from gpuwaste.testing import postgres_server
from gpuwaste.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    reason = postgres_server.missing()
    if reason:
        pytest.skip(reason)
    with postgres_server.postgres_server() as server:
        yield server
