"""The units in etc/systemd: systemd's own checks find nothing, and their figures are those of the page."""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.hub.server import FILES
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.patience import patient
from gpuwaste.testing.unit_filter import allowed

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "etc" / "systemd").glob("*.service"))
PAGE = ROOT / "docs" / "how-to" / "services.md"
TIMERS = sorted((ROOT / "etc" / "systemd").glob("*.timer"))
ON_A_TIMER = {"gpuwaste-train": "gpuwaste/models", "gpuwaste-propose": "gpuwaste/hub"}  # no daemons, no sockets
OWN_USER = {"gpuwaste-actor"}  # the one service with rights in Slurm shares neither user nor directory
SHARED = {"RuntimeDirectory": "gpuwaste", "RuntimeDirectoryPreserve": "yes", "RuntimeDirectoryMode": "0755"}

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def settings(unit: Path) -> dict[str, list[str]]:
    """Return the settings of [Service], each with its values in order."""
    found: dict[str, list[str]] = {}
    body = unit.read_text(encoding="utf-8").partition("[Service]")[2].partition("[Install]")[0]
    for line in body.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def documented() -> dict[str, float]:
    """Return the exposure of each unit as the page has it."""
    rows = re.findall(r"^\| `(gpuwaste-\w+)` .*\| ([\d.]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: float(value) for name, value in rows}


def test_the_hub_may_open_as_many_files_as_it_serves_connections() -> None:
    """The unit gives the hub the open files that its server wants for the connections of both sockets."""
    hub = settings(ROOT / "etc" / "systemd" / "gpuwaste-hub.service")
    assert int(hub["LimitNOFILE"][0]) == FILES


def test_there_are_four_and_two_timers() -> None:
    """Agent, hub, advisor, actor, training and proposals have a unit each, and the page has a row for each."""
    names = {unit.stem for unit in UNITS}
    daemons = {"gpuwaste-agent", "gpuwaste-hub", "gpuwaste-advisor", "gpuwaste-actor"}
    assert names == daemons | set(ON_A_TIMER) == set(documented())
    assert {timer.stem for timer in TIMERS} == set(ON_A_TIMER)


def test_the_training_gives_way_and_puts_nothing_into_use() -> None:
    """Least weight and priority, killed first; the new model goes on trial; the service starts by its timer alone."""
    training = ROOT / "etc" / "systemd" / "gpuwaste-train.service"
    have = settings(training)
    assert (have["Nice"], have["IOSchedulingClass"], have["CPUWeight"]) == (["19"], ["idle"], ["10"])
    assert "--challenge" in have["ExecStart"][0]
    assert "--promote" not in have["ExecStart"][0]
    assert "[Install]" not in training.read_text(encoding="utf-8")


@needs_systemd
def test_systemd_reads_them_without_a_warning(tmp_path: Path) -> None:
    """`systemd-analyze verify` says nothing at all; the command, which is not installed here, stands in by name."""
    copies = []
    for unit in (*UNITS, *TIMERS):
        copy = tmp_path / unit.name
        copy.write_text(
            unit.read_text(encoding="utf-8").replace("/usr/bin/gpuwaste", "/usr/bin/true"), encoding="utf-8"
        )
        copies.append(str(copy))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *copies], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_exposure_is_what_the_page_says(unit: Path) -> None:
    """`systemd-analyze security` finds no more than is documented."""
    most = documented()[unit.stem]
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={round(most * 10)}"]
    done = subprocess.run([*command, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


@needs_systemd
def test_a_credential_leaves_the_exposure_as_it_is(tmp_path: Path) -> None:
    """The drop-in of the page on secrets is read without a warning, and the hub's figure stays the page's."""
    text = (ROOT / "docs" / "how-to" / "secrets.md").read_text(encoding="utf-8")
    dropin = re.search(r"```ini\n# systemctl edit gpuwaste-hub\n\[Service\]\n(.*?)```", text, re.DOTALL)
    assert dropin is not None
    unit = tmp_path / "gpuwaste-hub.service"
    shipped = (ROOT / "etc" / "systemd" / unit.name).read_text(encoding="utf-8")
    unit.write_text(
        shipped.replace("[Service]\n", f"[Service]\n{dropin[1]}").replace("/usr/bin/gpuwaste", "/usr/bin/true")
    )
    for words in (["verify", "--man=no"], ["security", "--offline=true", "--no-pager", "--threshold=12"]):
        done = subprocess.run(["systemd-analyze", *words, str(unit)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-300:] + done.stderr
        assert done.stderr == ""


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_none_takes_anothers_directory_away(unit: Path) -> None:
    """/run/gpuwaste is the same for all and outlives each; state directories are one's own, but for the models'."""
    have = settings(unit)
    if unit.stem in {*OWN_USER, *ON_A_TIMER}:
        assert "RuntimeDirectory" not in have
        assert have["StateDirectory"] == [ON_A_TIMER.get(unit.stem, unit.stem)]
        return
    assert {key: have[key][0].split()[0] for key in SHARED} == SHARED
    own = f"gpuwaste/{unit.stem.removeprefix('gpuwaste-')}"
    assert set(have["StateDirectory"][0].split()) - {"gpuwaste/models"} == {own}


DAEMONS = [unit for unit in UNITS if unit.stem not in ON_A_TIMER]


@pytest.mark.parametrize("unit", DAEMONS, ids=lambda unit: unit.stem)
def test_it_tells_systemd_of_itself_and_keeps_its_limits(unit: Path) -> None:
    """Type=notify with a watchdog, its own user, nothing writable but its own, limits of memory, CPU and tasks."""
    have = settings(unit)
    assert have["Type"] == ["notify"]
    assert have["User"] == [unit.stem if unit.stem in OWN_USER else "gpuwaste"]
    assert have["ProtectSystem"] == ["strict"]
    assert have["NoNewPrivileges"] == ["yes"]
    assert "ReadWritePaths" not in have
    for key in ("WatchdogSec", "MemoryMax", "CPUQuota", "CPUWeight", "TasksMax", "RestartSec", "TimeoutStartSec"):
        assert have[key], key
    assert have["ExecStart"] == [f"/usr/bin/gpuwaste {unit.stem.removeprefix('gpuwaste-')} run"]


def test_no_service_has_a_capability() -> None:
    """The ambient and the bounding set of each unit are there and empty."""
    for unit in UNITS:
        have = settings(unit)
        for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
            assert have[key] == [""], (unit.stem, key)


def test_the_drop_in_has_what_older_systemds_do_not_know() -> None:
    """Steps of the restart's delay are in the drop-in and in no unit: systemd before 254 warns of them."""
    drop_in = ConfigParser(strict=False, interpolation=None)
    drop_in.read(ROOT / "etc" / "systemd" / "50-backoff.conf")
    assert set(drop_in["Service"]) == {"restartsteps", "restartmaxdelaysec"}
    assert not any("RestartSteps" in settings(unit) for unit in UNITS)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("with_drop_in", [False, True])
def test_the_hub_compiles_with_its_drop_in_alone(tmp_path: Path, *, with_drop_in: bool) -> None:
    """As the unit stands the simulator says in one line which drop-in it needs; with that the hub can load it."""
    unit = tmp_path / "gpuwaste-hub.service"
    shutil.copy(ROOT / "etc" / "systemd" / unit.name, unit)
    if with_drop_in:
        (tmp_path / f"{unit.name}.d").mkdir()
        shutil.copy(ROOT / "etc" / "systemd" / "50-simulator.conf", tmp_path / f"{unit.name}.d")
    code = "from gpuwaste.plan.expectations import need_simulator as n; n(); print('loaded')"
    argv = [sys.executable, "-m", "gpuwaste.testing.unit_filter", str(unit), sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patient(120))
    if "prctl: Invalid argument" in done.stderr:
        pytest.skip("this kernel cannot deny it (Linux 6.3)")
    if with_drop_in:
        assert done.stdout == "loaded\n", done.stderr
    else:
        assert "50-simulator.conf" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("with_drop_in", [False, True])
def test_intels_counters_can_be_opened_with_the_drop_in_of_the_how_to_alone(
    tmp_path: Path, *, with_drop_in: bool
) -> None:
    """perf_event_open, by which Level Zero counts, is refused by the agent's unit and allowed by the site's lines."""
    page = (ROOT / "docs" / "how-to" / "intel.md").read_text()
    lines = page.partition("gpuwaste-agent.service.d/intel.conf")[2].partition("```")[0]
    unit = tmp_path / "gpuwaste-agent.service"
    text = (ROOT / "etc" / "systemd" / unit.name).read_text()
    unit.write_text(text + "".join(f"{line.strip()}\n" for line in lines.splitlines()) * with_drop_in)
    assert ("perf_event_open" in allowed(unit)) is with_drop_in


@pytest.mark.long
def test_training_runs_under_its_units_filters() -> None:
    """XGBoost grows a tree and ONNX Runtime is loaded with the system calls and the memory that the unit leaves."""
    unit = ROOT / "etc" / "systemd" / "gpuwaste-train.service"
    code = (
        "import numpy as n, xgboost as x, gpuwaste.advice.predict.onnx_runtime, gpuwaste.models.bundle_training\n"
        "d = x.QuantileDMatrix(n.arange(200, dtype='f4').reshape(100, 2), label=n.arange(100) % 2)\n"
        "x.train({'tree_method': 'hist', 'nthread': 2}, d, 1)\nprint('grown')"
    )
    argv = [sys.executable, "-m", "gpuwaste.testing.unit_filter", str(unit), sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patient(300))
    if "prctl: Invalid argument" in done.stderr:
        pytest.skip("this kernel cannot deny it (Linux 6.3)")
    assert done.stdout == "grown\n", done.stderr[-500:]


@pytest.mark.long
def test_a_proposal_is_computed_under_its_units_filters_and_applies_nothing(tmp_path: Path) -> None:
    """The words of the unit, on a store instead of the hub: loops are compiled, the result is kept for the pages."""
    unit = ROOT / "etc" / "systemd" / "gpuwaste-propose.service"
    have = settings(unit)
    assert (have["Nice"], have["IOSchedulingClass"], have["CPUWeight"]) == (["19"], ["idle"], ["10"])
    assert "[Install]" not in unit.read_text(encoding="utf-8")
    words = [word for word in have["ExecStart"][0].split()[1:] if not word.startswith("$")]
    del words[words.index("-S") : words.index("-S") + 2]
    assert "--propose" in words
    config, store = tmp_path / "gpuwaste.toml", HubStore.open(tmp_path / "jobs.duckdb", SystemClock())
    (tmp_path / "hub").mkdir()
    config.write_text(f'[hub]\nstate_dir = "{tmp_path}/hub"\n')
    config.chmod(0o644)
    times, tres = [HOUR + 60 * number for number in range(60)], "cpu=4,gres/gpu=1"
    upsert_jobs(
        store,
        [
            record(number, "alice", submit=at, start=at, end=at + 1800, time_limit_s=7200, req_tres=tres)
            for number, at in enumerate(times, 1)
        ],
    )
    store.close()
    argv = [sys.executable, "-m", "gpuwaste.testing.unit_filter", str(unit), sys.executable, "-m", "gpuwaste.cli"]
    more = ["--store", str(tmp_path / "jobs.duckdb"), "--processors", "8", "--config", str(config)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [*argv, *words, *more], capture_output=True, text=True, check=False, timeout=patient(300), env=environment
    )
    if "prctl: Invalid argument" in done.stderr:
        pytest.skip("this kernel cannot deny it (Linux 6.3)")
    assert done.returncode == 0, done.stderr[-500:]
    assert "no change is proposed" in done.stderr
    assert list((tmp_path / "hub" / "simulations").glob("*.json"))


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd is not installed")
def test_tmpfiles_makes_the_shared_directories(tmp_path: Path) -> None:
    """systemd-tmpfiles makes them with owner and mode in a root of its own, and leaves what is in them alone."""
    if os.geteuid():
        pytest.skip("needs root to give directories away")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\ngpuwaste:x:961:961::/:/bin/false\n")
    (tmp_path / "etc" / "group").write_text("root:x:0:\ngpuwaste:x:961:\n")
    (tmp_path / "run" / "gpuwaste").mkdir(parents=True)
    (tmp_path / "run" / "gpuwaste" / "advisor.sock").write_text("kept")
    conf = ROOT / "etc" / "systemd" / "gpuwaste.tmpfiles.conf"
    done = subprocess.run(
        ["systemd-tmpfiles", f"--root={tmp_path}", "--create", "--remove", "--clean", str(conf)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = {
        path: ((tmp_path / path).stat().st_uid, oct((tmp_path / path).stat().st_mode & 0o7777))
        for path in ("run/gpuwaste", "run/gpuwaste-jobs", "var/lib/gpuwaste", "var/lib/gpuwaste/models")
    }
    assert found == {
        "run/gpuwaste": (961, "0o755"),
        "run/gpuwaste-jobs": (0, "0o755"),
        "var/lib/gpuwaste": (0, "0o755"),
        "var/lib/gpuwaste/models": (961, "0o750"),
    }
    assert (tmp_path / "run" / "gpuwaste" / "advisor.sock").read_text() == "kept"
