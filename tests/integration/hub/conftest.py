"""A running hub for each test, or one for the tests of a module that leave it as it was, and a munged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.testing.lone_hub import private_munged


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    with running_hub(tmp_path) as rig:
        yield rig


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run one hub for the tests of a module that change nothing in it."""
    with running_hub(tmp_path_factory.mktemp("hub")) as rig:
        yield rig


@pytest.fixture(scope="module")
def munge() -> Iterator[str]:
    with private_munged() as path:
        yield path
