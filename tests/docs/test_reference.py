"""The generated pages: none is stale, nothing that a person can set, call or scrape is without a word."""

import ast
import logging
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tools.reference import PAGES, commands, configuration, doctor, events, exit_codes, metrics, source, wire

from gpuwaste.cli.main import build_parser, command_names, load_command
from gpuwaste.cli.manual import ENVIRONMENT, EXIT_CODES
from gpuwaste.core.config import Config, config_from_dict, describe_config, load_config, site_keys
from gpuwaste.hub.openapi import schema
from gpuwaste.ledger.findings import FINDINGS
from gpuwaste.ledger.gpu_sample import UnknownReason
from gpuwaste.ledger.hour import HOUR_CODEC, AllocationHour
from gpuwaste.slurm.run_key import RunKey

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "etc" / "gpuwaste.toml"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_what_the_code_says(path: str) -> None:
    """A generated file in the tree equals what `make docs` writes now."""
    assert (ROOT / path).read_text(encoding="utf-8") == PAGES[path](), f"{path} is stale: make docs"


def test_no_page_is_left_over() -> None:
    """The folder of the reference holds generated pages only."""
    assert {f"docs/reference/{p.name}" for p in (ROOT / "docs/reference").iterdir()} == {
        p for p in PAGES if p.startswith("docs/reference/")
    }


def test_every_key_is_documented() -> None:
    """Each key of the configuration has a text, and stands on the page and in the example."""
    page, example = configuration.page(), configuration.example()
    for section, key, _, _, text in describe_config():
        assert text.strip(), f"[{section}] {key} has no text"
        assert f"| `{key}` |" in page
        assert f"\n#{key} = " in example


def test_every_command_and_option_is_documented() -> None:
    """Each command and action says what it does, and each of its arguments has a help."""
    page = commands.page()
    for name, text, parser in commands.parsers():
        assert text.strip(), f"gpuwaste {name} has no text"
        assert f"# gpuwaste {name}\n" in page
        for written, meaning in commands.options(parser):
            assert meaning.strip(), f"gpuwaste {name} {written} has no help"
            assert f"| `{written.replace('|', chr(92) + '|')}` |" in page


def test_every_command_has_examples_that_are_understood() -> None:
    """Each command has an example with its meaning, and the parser takes every one."""
    page = commands.page()
    for name in command_names():
        examples = load_command(name).EXAMPLES
        assert examples, name
        for line, meaning in examples:
            assert meaning.endswith("."), line
            assert build_parser().parse_args(shlex.split(line)[1:]).command == name
            assert line in page


def test_every_variable_of_the_environment_is_documented() -> None:
    """Each variable that the code reads stands in the manual; sbatch's own are Slurm's.

    Scripts that a calibration copies read those of the job that they run in.
    """
    known = ", ".join(ENVIRONMENT)
    for name, tree in source.modules():
        if name.startswith("estimate.calibrate.site."):
            continue
        for call in source.calls(tree):
            if source.called(call) == "os.environ.get" and (named := source.words(call.args[0])) != "{}":
                assert named in known or named == "TERM", name


def test_every_metric_is_documented() -> None:
    """Each metric of agent and hub has a text and base units in its name, and is named once on the page."""
    page, rows = metrics.page(), [*metrics.agent_rows(), *metrics.hub_rows()]
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.text.strip(), f"{row.name} has no text"
        assert page.count(f"| `{row.name}` |") == 1
        assert row.kind != "counter" or row.name.endswith("_total")
        assert not {"job", "instance", "user"} & set(row.labels)


def test_every_finding_says_its_thresholds() -> None:
    """Each finding's file says what it finds and by which thresholds."""
    for name, module in FINDINGS.items():
        assert "\nThresholds. " in str(module.__doc__), f"{name} does not say its thresholds"


def test_every_exit_code_has_a_meaning() -> None:
    """The code of each error of the core, and each that a command names, stands in the table."""
    known = set(EXIT_CODES)
    assert {kind.exit_code for kind in exit_codes.error_classes()} <= known
    named = {
        ast.literal_eval(node.value)
        for _, tree in source.modules("src/gpuwaste/cli")
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and "EXIT_" in ast.unparse(node)[:7]
        if isinstance(node.value, ast.Constant)
    }
    assert named == known - {0, 1}


def test_every_event_of_the_log_is_on_its_page_once() -> None:
    """Each declared event has an id of its own, stands on the page, and has a remedy where it asks for something."""
    found, page = events.declared(), events.page()
    assert {event.module.split(".")[1] for event in found} >= {"agent", "hub", "advisor", "net"}
    assert len({event.id for event in found}) == len(found) > 80
    for event in found:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", event.id), event.id
        assert len(re.findall(f"`{event.id}[`:]", page)) == 1
        assert bool(event.remedy) == (event.level > logging.INFO), event.id


def test_every_reason_of_unknown_time_is_on_its_page() -> None:
    """The ledger's page has a row for each reason that agent and hub give, and for no other."""
    page = (ROOT / "docs/explanation/ledger.md").read_text(encoding="utf-8").partition("## Reasons for unknown time")[2]
    rows = re.findall(r"^\| ([a-z_]+) \|", page.partition("\n## ")[0], re.MULTILINE)
    assert rows[1:] == [reason.value for reason in UnknownReason if reason]


def test_every_line_of_the_doctor_is_on_its_page() -> None:
    """Each call that can print a warning or a failure is a row, and says what to do or is an order by itself."""
    page, rows = doctor.page(), 0
    for _, tree in source.modules("src/gpuwaste/cli/checks"):
        for row in doctor.lines(tree):
            rows += 1
            assert f"| `{row.name}` | {row.status} |" in page
            assert row.mend or "fail" not in row.status, row
    assert rows > 40


def test_every_field_that_travels_is_documented() -> None:
    """The page has a meaning for each field of a row of hours, one that travels only where it is not empty included."""
    row = AllocationHour(RunKey("gw", 7, 1), "gpu1", "GPU-1", 0, 1, 0, 0, xids={79: 1})
    row.profiled_ms, row.sm_active, row.tensor_active, row.dram_active, row.nvlink_b, row.pcie_b = 0, 0, 0, 0, 0, 0
    row.energy_ms, row.idle_energy_j, row.cpu_energy_ms, row.cpu_energy_j = 0, 0.0, 0, 0.0
    sent = row.to_wire()
    found = schema(HOUR_CODEC.struct)["properties"]
    assert set(found) == set(sent)
    assert [name for name, part in found.items() if not part.get("description")] == []
    assert "| `energy_j` | `number 0..1e+15 or null` | energy, joules |" in wire.page()


def test_the_example_begins_with_what_a_site_must_look_at() -> None:
    """The first lines of the example are a file that loads, with the keys and values of the page on installation."""
    first = EXAMPLE.read_text(encoding="utf-8").partition("All keys by section")[0]
    own = tomllib.loads("".join(re.findall(r"^#     (.*\n)", first, re.MULTILINE)))
    install = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    assert own == tomllib.loads(re.findall(r"```toml\n(.*?)```", install, re.DOTALL)[0])
    assert [(section, key) for section, table in own.items() for key in table] == [row[:2] for row in site_keys()]
    assert config_from_dict(own, "site.toml").hub.listen == "0.0.0.0:9461"


def test_the_example_is_the_defaults() -> None:
    """The example loads as it lies there, and with every line uncommented, to the defaults."""
    assert load_config(EXAMPLE) == Config()
    whole = re.sub(r"^#(?=[a-z0-9_]+ = )", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    data = tomllib.loads(whole)
    assert [(section, key) for section in data for key in data[section]] == [row[:2] for row in describe_config()]
    assert config_from_dict(data, "the example, uncommented") == Config()
