"""A hub played in memory, and the token that it takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gpuwaste.net.tokens import TokenChecker, TokenIssuer
from gpuwaste.testing.fake_hub import FakeHub

TOKEN: Final = "t" * 32


@pytest.fixture
def issuer(tmp_path: Path) -> TokenIssuer:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN)
    return TokenIssuer(path)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"gpu1 {TOKEN}\n")
    with FakeHub({"token": TokenChecker(path)}) as hub:
        yield hub
