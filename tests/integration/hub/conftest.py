"""One running hub for each test module that asks for it, and a munged; tests use job ids of their own."""

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
def munge() -> Iterator[str]:
    with private_munged() as path:
        yield path
