"""The how-to pages: what they tell to copy can be used, what they quote exists, links lead somewhere."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from gpuwaste.cli.main import build_parser
from gpuwaste.core.config import config_from_dict, describe_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
HOWTO = sorted((ROOT / "docs/how-to").glob("*.md"))
AWAITED = {"capabilities.md"}  # written apart from these pages: to be dropped when it is there
GPUWASTE = re.compile(r"(?:^|--init-groups )(gpuwaste [a-z].*?)(?: \|.*)?$", re.MULTILINE)


def blocks(page: Path, kind: str) -> list[str]:
    """Return a page's fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file of the repository."""
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        path = page.parent / target
        assert path.exists() or path.name in AWAITED, target


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_configuration_to_copy_can_be_used(page: Path) -> None:
    """Each TOML block is a configuration file without an unknown key."""
    for text in blocks(page, "toml"):
        config_from_dict(tomllib.loads(text), named(page))


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_commands_to_copy_are_understood(page: Path) -> None:
    """Each gpuwaste command in a shell block is one that the parser takes."""
    for text in blocks(page, "sh"):
        for command in GPUWASTE.findall(text):
            words = shlex.split(command, comments=True)[1:]
            if words and not words[0].startswith("/"):
                build_parser().parse_args(words)


def test_the_scrape_configuration_is_sound(tmp_path: Path) -> None:
    """`promtool check config` takes the Prometheus configuration of the how-to pages."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    (text,) = (text for page in HOWTO for text in blocks(page, "yaml"))
    path = tmp_path / "prometheus.yml"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(["promtool", "check", "config", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_quoted_error_lines_are_those_of_the_code() -> None:
    """Each error line in the table of troubles stands so in the source."""
    code = [path.read_text(encoding="utf-8") for root in ("src", "agent") for path in (ROOT / root).rglob("*.py")]
    source = re.sub(r'"\s+f?"', "", "\n".join(code)).replace("update the {older}", "update the hub update the agent")
    page = (ROOT / "docs/how-to/cluster.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| the line says .*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    for line in table.splitlines():
        for fragment in re.findall(r"`([^`]+)`", line.split("|")[1]):
            assert fragment in source, f"no error line of the code says {fragment!r}"


def test_the_page_of_the_services_lists_what_a_reload_changes() -> None:
    """Every key that a daemon puts in force at SIGHUP stands in its row of docs/how-to/services.md."""
    page = (ROOT / "docs/how-to/services.md").read_text(encoding="utf-8")
    known = {key for _, key, *_ in describe_config()}
    for name, path in (
        ("agent", "agent/gpuwaste/agent/daemon.py"),
        ("hub", "src/gpuwaste/hub/daemon.py"),
        ("advisor", "src/gpuwaste/advisor/daemon.py"),
    ):
        (row,) = re.findall(rf"^\| {name} \| (.*) \|$", page, flags=re.MULTILINE)
        keys = set(re.findall(r'"(?:agent|hub|advisor)\.(\w+)"', (ROOT / path).read_text(encoding="utf-8")))
        assert {key for key in keys & known if f"{key}`" not in row} == set(), name
