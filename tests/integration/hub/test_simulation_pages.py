"""The pages of kept simulations: for operators, the difference with its interval first, each form at the same path."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.integration.cli.test_simulate import swf
from tests.integration.hub.rig import Rig
from tests.integration.hub.test_pages import ALICE, OPER

from gpuwaste.cli.main import main
from gpuwaste.core.units import DAY_S

pytestmark = pytest.mark.sockets


@pytest.fixture
def kept(hub: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the id of a simulation of 40 days that the command kept in the hub's directory."""
    rows = [(n, n * DAY_S // 2, 0, 30_000 + 7000 * (n % 5), 1 + n % 4, 90_000) for n in range(1, 81)]
    log, config = swf(tmp_path / "log.swf", rows), tmp_path / "hub.toml"
    config.write_text(f'[hub]\nstate_dir = "{hub.directory}"\n')
    words = ["limits,processors=2", "--save", "--config", str(config)]
    assert main(["simulate", "what-if", *words, "--swf", str(log)]) == 0
    said = capsys.readouterr().err
    assert "page /simulations/" in said
    return said.split()[2]


def test_an_operator_reads_the_difference_first(hub: Rig, kept: str) -> None:
    """The first line is the change of the mean wait with its interval; a row for each figure; plots; the command."""
    text = hub.page(OPER, f"/simulations/{kept}").body.decode()
    head = text[text.index("<h1>") : text.index("</h1>")]
    assert "limits, easy: mean wait" in head
    assert "95\u00a0%" in head or "95 %" in head
    assert text.count("<svg") >= 3
    assert "Difference" in text
    assert "what-if limits,processors=2" in text or "How this is computed" in text
    assert f'href="/simulations/{kept}.json"' in text


def test_each_form_is_at_the_same_path(hub: Rig, kept: str) -> None:
    """JSON, CSV and each plot; another form and another id are not found."""
    found = json.loads(hub.page(OPER, f"/simulations/{kept}.json").body)
    assert found["facts"][0]["id"] == "mean_wait_s.1"
    table = hub.page(OPER, f"/simulations/{kept}.csv")
    assert table.body.decode().splitlines()[0].startswith("change,scheduler,of,figure,base")
    chart = hub.page(OPER, f"/simulations/{kept}.svg")
    assert chart.headers["content-type"].startswith("image/svg+xml")
    ET.fromstring(chart.body)  # noqa: S314 our own output
    for name in (f"{kept}.99.svg", f"{kept}.txt", "000000000000", "..", "x" * 300, "%00"):
        assert hub.page(OPER, f"/simulations/{name}").status == 404, name


def test_placements_are_drawn(hub: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A simulation on nodes has a Gantt chart on its page and as a file."""
    config, machine = tmp_path / "hub.toml", tmp_path / "m.toml"
    config.write_text(f'[hub]\nstate_dir = "{hub.directory}"\n')
    machine.write_text('[[nodes]]\nnames = "n[1-2]"\ncpus = 2\n')
    log = swf(tmp_path / "log.swf", [(n, 9 * n, 0, 100, 1 + n % 2, 100) for n in range(1, 9)])
    words = ["--machine", str(machine), "--scheduler", "slurm", "--save", "--config", str(config)]
    assert main(["simulate", "run", "--swf", str(log), *words]) == 0
    kept = capsys.readouterr().err.split()[2]
    assert "Nodes by job: slurm" in hub.page(OPER, f"/simulations/{kept}").body.decode()
    chart = hub.page(OPER, f"/simulations/{kept}.4.svg").body.decode()
    assert "job 1, n1 " in chart


def test_the_list_names_it(hub: Rig, kept: str) -> None:
    """The operators' pages lead to the list, and the list to the simulation."""
    assert f'href="/simulations/{kept}"' in hub.page(OPER, "/simulations").body.decode()
    assert 'href="/simulations"' in hub.page(OPER, "/me").body.decode()


def test_ordinary_users_see_none(hub: Rig, kept: str) -> None:
    """Neither the list nor a simulation in any form."""
    for target in ("/simulations", f"/simulations/{kept}", f"/simulations/{kept}.json", f"/simulations/{kept}.svg"):
        assert hub.page(ALICE, target).status == 403, target


def test_nothing_kept_is_an_empty_list(hub: Rig) -> None:
    """Before the first one the list says how to keep one."""
    assert "gpuwaste simulate run --save" in hub.page(OPER, "/simulations").body.decode()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"id": "x"}', b"\xff\xfe\x00", b"[" * 100_000])
def test_a_bad_file_ends_no_page(hub: Rig, data: bytes) -> None:
    """A file that is cut or no simulation is not in the list; its own page says that it cannot be shown now."""
    folder = hub.directory / "simulations"
    folder.mkdir()
    (folder / "00000000abcd.json").write_bytes(data)
    assert hub.page(OPER, "/simulations").status == 200
    assert hub.page(OPER, "/simulations/00000000abcd").status == 503
