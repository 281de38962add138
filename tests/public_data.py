"""Public logs and captures for tests, which are not part of the repository; a test that lacks one skips, saying so."""

from pathlib import Path

import pytest
from tools.data.places import find


def public(name: str) -> Path:
    """Return the file, or skip the test with what to do."""
    path = find(name)
    if path is None:
        pytest.skip(f"no {name} here: run `make data`")
    return path
