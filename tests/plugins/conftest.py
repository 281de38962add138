"""The submit plugins' harness programs, built once, and an advisor that answers pass."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor
from gpuwaste.testing.submit_plugins import build_plugins

VERDICT = "0123456789abcdef"


@pytest.fixture(scope="session")
def harness() -> Path:
    """Return the folder with the harness programs."""
    return build_plugins("harness", "fuzz")


@pytest.fixture
def advisor(tmp_path: Path) -> Iterator[ScriptedAdvisor]:
    """Serve pass with a verdict's id from tmp_path/advisor.sock."""

    def answer(_: object) -> bytes:
        return encode_reply(VERDICT, "pass", as_of=int(time.time()))

    with ScriptedAdvisor(tmp_path / "advisor.sock", answer) as serving:
        yield serving
