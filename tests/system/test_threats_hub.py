"""A hub that lies: what its answers can do to the commands and to the advisor. Real processes, real sockets."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.advisor.conftest import job
from tests.system.evil_hub import WAYS, EvilHub, evil_hub

from gpuwaste.testing.lone_advisor import LoneAdvisor
from gpuwaste.testing.lone_hub import munged_path, private_munged
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)")

COMMANDS = [
    ["report"],
    ["report", "--csv"],
    ["report", "--parsable"],
    ["job", "7"],
    ["job", "7", "--json"],
    ["now", "--hours", "1"],
    ["policy", "verdicts"],
    ["policy", "verdicts", "--score"],
    ["predict", "--jobs", "7"],
    ["digest", "list"],
    ["notify", "off"],
    ["doctor", "--role", "login"],
]


@pytest.fixture(scope="module")
def munge() -> Iterator[str]:
    with private_munged() as path:
        yield path


@pytest.fixture
def evil() -> Iterator[EvilHub]:
    with evil_hub() as hub:
        yield hub


@pytest.mark.parametrize("way", WAYS)
def test_no_answer_of_a_hub_moves_a_terminal_or_breaks_a_command(
    evil: EvilHub, munge: str, tmp_path: Path, way: str
) -> None:
    """Whatever comes, a command ends by itself, without a traceback, and prints no control or format character."""
    evil.way = WAYS[way]
    config = tmp_path / "gpuwaste.toml"
    config.write_text(
        f'[common]\ncluster = "gw"\nhub_url = "{evil.url}"\nmunge_socket = "{munge}"\nslurm_conf = "{config}"\n'
        f'[hub]\nagent_user = "root"\n[plugin]\nadvisor_user = "root"\n',
        encoding="utf-8",
    )
    code = (
        "import io, sys, contextlib\nfrom gpuwaste.cli.main import main\n"
        "for line in sys.stdin.read().splitlines():\n"
        "    print('##', line, flush=True)\n"
        "    try: print('code', main(line.split()))\n"
        "    except SystemExit as end: print('code', end.code)\n"
    )
    words = "\n".join(" ".join([*command, "--config", str(config)]) for command in COMMANDS)
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=words.encode(),
        capture_output=True,
        timeout=patient(150),
        check=False,
        env=_env(),
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 0, err[-2000:]
    assert out.count("\ncode ") == len(COMMANDS)
    assert "Traceback" not in err
    assert [c for c in (out + err).replace("\n", "") if not c.isprintable()] == []


@pytest.mark.parametrize("way", WAYS)
def test_an_advisor_answers_whatever_its_hub_says(evil: EvilHub, munge: str, place: Path, way: str) -> None:
    """It starts, it lets jobs pass, and its memory stays bounded, while each answer of its hub is evil."""
    evil.way = WAYS[way]
    (place / "policies.d").mkdir()
    advisor = LoneAdvisor(place, evil.url, munge)
    try:
        advisor.start()
        assert advisor.process is not None
        assert advisor.process.poll() is None, advisor.said
        for _ in range(50):
            assert advisor.ask(job())["action"] == "pass"
        assert advisor.rss_b() < 600e6
        assert (
            advisor.metric('gpuwaste_advisor_requests_total{result="judged"}')
            + advisor.metric('gpuwaste_advisor_requests_total{result="stale"}')
            >= 50
        )
    finally:
        advisor.stop()
    assert all(c.isprintable() or c == "\n" for c in advisor.said)
    assert advisor.process.returncode == 0


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("adv")


def _env() -> dict[str, str]:
    """Return an environment in which text beyond ASCII is printed as it is: the hardest case for a terminal."""
    return {**os.environ, "PYTHONIOENCODING": "utf-8:surrogateescape", "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
