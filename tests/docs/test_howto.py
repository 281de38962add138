"""The how-to pages: what they tell to copy can be used, what they quote exists, links lead somewhere."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from tools.reference import metrics

from gpuwaste.act.campaigns.campaign_definition import CampaignHead
from gpuwaste.act.events.inlet import load_inlet
from gpuwaste.act.events.outlet import load_outlet
from gpuwaste.act.rules.rule_file import load_rule, rule_from_toml
from gpuwaste.advice.policy.policy_file import TABLES
from gpuwaste.cli.config_check import problems
from gpuwaste.cli.main import build_parser
from gpuwaste.core.config import config_from_dict, describe_config
from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument
from gpuwaste.ledger.reports.job_types import DeviceRow
from gpuwaste.sim.sweep_study import read_study
from gpuwaste.slurm.site import machine_tables as tables
from gpuwaste.slurm.site.machine_file import read_machine

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]  # the others are generated
HOWTO = sorted((ROOT / "docs/how-to").glob("*.md"))
GPUWASTE = re.compile(r"(?:^ *|--init-groups |&& |until |-- )(gpuwaste [a-z-].*?)(?:;? *do .*)?$", re.MULTILINE)
_ABSENT = re.compile(r"/etc/gpuwaste/[a-z0-9-]+: cannot be read: No such file or directory")


def blocks(page: Path, kind: str) -> list[str]:
    """Return a page's fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the forges make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file of the repository, and a heading of it where it names one."""
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), f"{target}#{anchor}"


def test_each_page_is_on_the_map() -> None:
    """docs/README.md links every page of how-to, explanation and reference."""
    page = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#:\s]+)", page)}
    written = {path for room in ("how-to", "explanation", "reference") for path in (ROOT / "docs" / room).glob("*.md")}
    assert written - linked == set()


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_outlets_can_be_copied(page: Path, tmp_path: Path) -> None:
    """Each outlet of a page is one that the hub reads."""
    for text in blocks(page, "toml outlet"):
        (tmp_path / "outlet.toml").write_text(text, encoding="utf-8")
        assert load_outlet(tmp_path / "outlet.toml").kinds


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_inlets_can_be_copied(page: Path, tmp_path: Path) -> None:
    """Each inlet of a page is one that the hub reads."""
    for text in blocks(page, "toml inlet"):
        (tmp_path / "inlet.toml").write_text(text, encoding="utf-8")
        assert load_inlet(tmp_path / "inlet.toml").kinds


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_rules_can_be_copied(page: Path) -> None:
    """Each rule of a page is one that the hub uses."""
    for text in blocks(page, "toml rule"):
        assert rule_from_toml(text.encode(), "rule.toml", "rule").steps


@pytest.mark.parametrize("path", sorted((ROOT / "etc/rules.d").iterdir()), ids=lambda path: path.name)
def test_the_rules_that_ship_only_observe(path: Path) -> None:
    """Each can be used as it stands, does nothing, and is in the table of the page."""
    assert load_rule(path).head.mode == "observe"
    assert f"| `{path.name.removesuffix('.toml')}` |" in (ROOT / "docs/how-to/rules.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", HOWTO, ids=named)
def test_configuration_to_copy_can_be_used(page: Path, tmp_path: Path) -> None:
    """Each TOML block is a configuration that `config check` finds sound, a machine, or a study.

    Files of a site are not on this host.
    """
    for text in blocks(page, "toml"):
        if "[[nodes]]" in text:
            (tmp_path / "machine.toml").write_text(text, encoding="utf-8")
            assert read_machine(tmp_path / "machine.toml").gpus
            continue
        if "[grid]" in text:
            (tmp_path / "study.toml").write_text(text, encoding="utf-8")
            assert read_study(tmp_path / "study.toml").varied
            continue
        config = config_from_dict(tomllib.loads(text), named(page))
        assert [line for line in problems(Path("/nowhere"), config) if not _ABSENT.fullmatch(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_to_copy_are_understood(page: Path) -> None:
    """Each gpuwaste command in a shell block is one that the parser takes."""
    for text in blocks(page, "sh"):
        for command in GPUWASTE.findall(text.replace("\\\n", " ")):
            assert refusal(command) == "", command


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_commands_that_are_named_exist(page: Path) -> None:
    """Each gpuwaste command in a sentence is one, with its actions and options; what it needs may be left out."""
    for command in re.findall(r"`(gpuwaste [a-z-][^`]*)`", prose(page)):
        said = refusal(command)
        assert not said or "required" in said, f"{command}: {said}"


def refusal(command: str) -> str:
    """Return what the parser says against a command, "" where it takes it."""
    plain = re.sub(r"\$\([^)]*\)", "X", command)
    words = shlex.split(re.sub(r" (?:[|<>&]|&&|;).*", "", plain), comments=True)[1:]
    if not words or words[0].startswith("/"):
        return ""
    words = [*words[1:], "--help"] if words[0] == "help" and words[1:] else [word for word in words if word != "help"]
    if not words:
        return ""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            build_parser().parse_args(words)
    except SystemExit as end:
        return said.getvalue() if end.code else ""
    return ""


KEYS = {(section, key) for section, key, *_ in describe_config()}
NAMES = {key for _, key in KEYS} | {key.name.removesuffix("_") for kind in TABLES.values() for key in fields(kind)}
NAMES |= {key.name for key in fields(CampaignHead)}
NAMES |= tables.QOS.keys.keys() | tables.FAILURES.keys.keys()  # of a machine
LIKE_A_KEY = re.compile(
    r"`([a-z]+(?:_[a-z0-9]+)*_(?:s|days|bytes|pct|ratio|ms|us|mb|file|dir|url|user|conf|groups|socket|coverage))`"
)
FIGURES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/gpuwaste/cli/checks").glob("*.py"))
JOBSTATS = {word for row in metrics.jobstats_rows() for word in (row.name, *row.labels)}
FILES = {"pages", "duckdb", "sock"}  # names of files
OF_OTHERS = {"bf_max_job_user", "timeout_s"}  # of SchedulerParameters, of a study
OF_IDLENESS = {*IdlenessDocument.__struct_fields__, "max_age_s"}  # of the answer, and of its request
OF_GPUS = frozenset(DeviceRow.__struct_encode_fields__)  # what a job's document has of a GPU
LUA = {"log_user"}  # functions that Slurm gives to Lua as slurm.NAME


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_keys_that_are_named_exist(page: Path) -> None:
    """`[hub] listen`, `hub.listen` and `listen = ...` in a sentence are keys of the configuration or of a policy."""
    text = prose(page)
    sections = "|".join(sorted({section for section, _ in KEYS}))
    for section, key in re.findall(rf"`\[({sections})\] ([a-z_]+)", text):
        assert (section, key) in KEYS, f"[{section}] {key}"
    for section, key in re.findall(rf"`({sections})\.([a-z_]+)`", text):
        assert (section, key) in KEYS or key in FILES | LUA, f"{section}.{key}"
    for key in re.findall(r"`([a-z]+_[a-z0-9_]+) = [^`]*`", text):
        assert key in NAMES, key
    if page.parent.name != "decisions":  # they may name what was given up
        for key in LIKE_A_KEY.findall(text):
            assert (
                key in NAMES
                or f'"{key}"' in FIGURES
                or key.startswith("gpuwaste_")
                or key in JOBSTATS | OF_OTHERS | OF_GPUS | OF_IDLENESS
            ), key


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_metrics_that_are_named_exist(page: Path) -> None:
    """Each metric of a page, in sentences and in blocks, is one that agent, hub or advisor shows."""
    shown = {row.name for row in metrics.all_rows()}
    for name, star in re.findall(
        r"\b(gpuwaste_(?:gpu|agent|hub|advisor|build|start|clock|state)_[a-z_]*)(\*?)", page.read_text(encoding="utf-8")
    ):
        plain = re.sub(r"_(bucket|sum|count)$", "", name)
        assert {name, plain} & shown or (star and any(one.startswith(name) for one in shown)), name


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
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| the line says .*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    for line in table.splitlines():
        for fragment in re.findall(r"`([^`]+)`", line.split("|")[1]):
            assert fragment in source, f"no error line of the code says {fragment!r}"


def test_the_page_of_the_services_lists_what_a_reload_changes() -> None:
    """Every key that a daemon puts in force at SIGHUP stands in its row of docs/how-to/services.md."""
    page = (ROOT / "docs/how-to/services.md").read_text(encoding="utf-8")
    known = {key for _, key, *_ in describe_config()}
    for name, rooms in (
        ("agent", [ROOT / "agent"]),
        ("hub", [room for room in (ROOT / "src/gpuwaste").iterdir() if room.name not in {"advisor", "actor"}]),
        ("advisor", [ROOT / "src/gpuwaste/advisor"]),
    ):
        files = [path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py")]
        parts = "".join(text for text in files if "-> Reloads:" in text)
        keys = set(re.findall(r'"(?:agent|hub|advisor)\.(\w+)"', parts)) & known
        assert len(keys) > 2, name
        (row,) = re.findall(rf"^\| {name} \| (.*) \|$", page, flags=re.MULTILINE)
        assert {key for key in keys if f"{key}`" not in row} == set(), name


def test_the_index_has_every_decision() -> None:
    """docs/decisions/README.md links each record once, in order; numbers have no gap and are those of the titles."""
    folder = ROOT / "docs/decisions"
    records = sorted(path.name for path in folder.glob("0*.md"))
    assert re.findall(r"\]\((0[^)]*)\)", (folder / "README.md").read_text(encoding="utf-8")) == records
    for number, name in enumerate(records, start=1):
        assert name.startswith(f"{number:04}-"), name
        assert (folder / name).read_text(encoding="utf-8").startswith(f"# {number:04} "), name
