"""Small sites in which a page's command is run: hub, jobs and files are made, the output is the command's."""

import contextlib
import io
import os
import platform
import shlex
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Final
from unittest import mock

from tests.integration.hub import bundles
from tests.integration.hub import rig as rigs
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_now import NOW, OPEN, OPER
from tests.integration.hub.test_renewal import YARDSTICK, Site
from tests.integration.hub.test_rules import LADDER, passed, write
from tests.unit.cli.test_estimate_times import HLO, calibrated
from tests.unit.plan.facts import CONFIG

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_service import ActionService
from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.cli.main import main
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.bundle_files import CHALLENGER
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.mail_server import running_mail_server
from tools import drawn_month

_SURROUNDINGS: Final = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "LANGUAGE": "", "COLUMNS": "100", "NO_COLOR": "1"}
_LOG: Final = "simulate generate lublin jobs=1000 load=0.8 users=8 overestimate=3 seed=3 -o jobs.swf"
_ACTOR: Final = 4711


class _Clock(ShiftedClock):
    """Stands still between the steps that a scene takes."""

    def __init__(self, now_s: int) -> None:
        super().__init__()
        self._now_s = now_s

    def utc_us(self) -> int:
        """Return the moment of the scene."""
        return (self._now_s + self.later_s) * 1_000_000


@cache
def run_in(scene: str, command: str) -> str:
    """Return what a command prints in a scene, on stdout; names of this host's folders and ports are not in it."""
    with _folder() as folder, SCENES[scene](folder) as hidden, contextlib.redirect_stderr(io.StringIO()):
        _, text = printed(shlex.split(command)[1:])  # doctor's exit code is a part of what it shows
    for name, shown in hidden.items():
        text = text.replace(name, shown)
    if not text:
        raise ValueError(f"{command}: no output")
    return text


def printed(words: Sequence[str], config: str = "gpuwaste.toml") -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it prints on stdout."""
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
        code = main([*words, "--config", config])
    return code, stdout.getvalue()


def _made(words: Sequence[str]) -> None:
    """Run a command that makes a part of a scene. Raises ValueError where it fails."""
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        code, _ = printed(words)
    if code:
        raise ValueError(f"gpuwaste {shlex.join(words)}: exit code {code}: {stderr.getvalue()}")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Go to a folder of the scene's own, with a terminal's surroundings that are the same on every host."""
    with (
        tempfile.TemporaryDirectory(prefix="gwscene-", dir="/tmp") as name,
        contextlib.chdir(name),
        mock.patch.dict(os.environ, _SURROUNDINGS),
    ):
        time.tzset()
        Path("gpuwaste.toml").touch()
        yield Path(name)
    time.tzset()


@contextlib.contextmanager
def _empty(_folder: Path) -> Iterator[Mapping[str, str]]:
    """Make nothing."""
    yield {}


@contextlib.contextmanager
def _log(_folder: Path) -> Iterator[Mapping[str, str]]:
    """Write jobs.swf: a thousand jobs by a generator of the simulator."""
    _made(shlex.split(_LOG))
    yield {}


@contextlib.contextmanager
def _login(folder: Path) -> Iterator[Mapping[str, str]]:
    """Make a login host with Slurm's commands and a token, whose hub does not run."""
    (folder / "config.txt").write_text(f"{CONFIG}SLURM_VERSION = 24.11.5\n", encoding="utf-8")
    script = folder / "scontrol"
    script.write_text(f'#!/bin/sh\ncat "{folder}/config.txt"\n', encoding="utf-8")
    script.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-24-characters", encoding="utf-8")
    with socket.socket() as bound:  # nobody listens
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        (folder / "gpuwaste.toml").write_text(
            f'[common]\nhub_url = "{url}"\ntoken_file = "{token}"\n', encoding="utf-8"
        )
        yield {url: "http://hub1:9461", f"Python {platform.python_version()}": "Python ..."}


@contextlib.contextmanager
def _actions(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a hub with an idle job: its user got a mail, its cancellation waits for a person."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address="10.0.0.1")], levels={"oper": "Operator"})
    (folder / "rules.d").mkdir()
    with running_mail_server() as mail:
        notify = NotifyConfig(
            smtp_host="127.0.0.1", smtp_port=mail.port, sender="hpc@example.org", address="{user}@example.org",
            dry_run=False,
        )  # fmt: skip
        keys = {"rules_dir": str(folder / "rules.d")}
        with running_hub(folder, slurm, clock=_Clock(NOW), hub_keys=keys, notify=notify) as rig:
            rig.hub.get(ActionService).actor_uid = _ACTOR
            rig.hub.get(ClusterFacts).refresh()
            upsert_jobs(rig.store, [record(7, "alice", **OPEN), record(8, "bob", "proj2", **OPEN)])
            write(rig, LADDER.replace("MODE", "act").replace('approve = "none"', 'approve = "person"'))
            for _ in range(3):
                passed(rig, 1, 900)
                for row in rig.get(OPER, "/v1/actions").json["actions"]:
                    if row["kind"] == "notify":
                        rig.post(b"{}", OPER, target=f"/v1/actions/{row['id']}/approve")
                rig.hub.get(ActionParts).worker.turn()
            rig.post(b'{"actor": "a", "kinds": ["cancel"]}', _ACTOR, target="/v1/actions/claim")
            with _asked_by_an_operator(rig, folder):
                yield {}


@contextlib.contextmanager
def _trial(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a hub with a model on trial that predicts failures better than the one in use: 1200 jobs of 25 users."""
    with running_hub(folder, clock=_Clock(HOUR + 86400), models=ModelsConfig()) as rig:
        rig.hub.get(ClusterFacts).refresh()
        rig.hub.get(ClusterFacts).cluster()
        site = Site(rig)
        bundles.write(site.models, "old", -0.8, created_utc=HOUR - 7 * 86400)
        bundles.write(site.models, "new", 0.4, created_utc=HOUR)
        registry = Registry(site.models)
        old, new = registry.promote("old").hash, registry.challenge("new").hash
        os.utime(site.models / CHALLENGER, (HOUR + 3600, HOUR + 3600), follow_symlinks=False)
        site.judge(old, {new: 0.35, YARDSTICK: 0.0}, own=0.3, jobs=1200)
        rig.hub.get(Renewal).step()
        with _asked_by_an_operator(rig, folder):
            yield {}


@contextlib.contextmanager
def _month(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a hub that has a month of a small cluster, with its nodes and outages."""
    slurm = FakeSlurm(node_list=list(drawn_month.NODES), levels={"oper": "Operator"})
    with running_hub(folder, slurm, clock=_Clock(drawn_month.END + HOUR_S)) as rig:
        rig.hub.get(ClusterFacts).refresh()
        drawn_month.store_month(rig.store)
        with _asked_by_an_operator(rig, folder):
            yield {}


@contextlib.contextmanager
def _asked_by_an_operator(rig: Rig, folder: Path) -> Iterator[None]:
    """Let the commands of this process ask the hub at its Unix socket as `oper`."""
    (folder / "gpuwaste.toml").write_text(f'[common]\nhub_url = "unix:{rig.socket}"\n', encoding="utf-8")
    with mock.patch.dict(rigs.USERS, {os.getuid(): "oper"}):
        yield


@contextlib.contextmanager
def _program(folder: Path) -> Iterator[Mapping[str, str]]:
    """Write a matrix product, step.hlo, on a host that has calibrated nothing."""
    (folder / "gpuwaste.toml").write_text(f'[common]\nmodels_dir = "{folder / "models"}"\n', encoding="utf-8")
    (folder / "step.hlo").write_text(HLO.format(n=1500), encoding="utf-8")
    yield {}


@contextlib.contextmanager
def _calibrated(folder: Path) -> Iterator[Mapping[str, str]]:
    """Train on sixty matrix products measured on an L4; step.hlo is one of another size."""
    models = folder / "models"
    with contextlib.redirect_stdout(io.StringIO()):
        calibrated(folder / "calibration-l4", "l4", "NVIDIA L4")
    _made(["model", "train", "--times", "calibration-l4", "--name", "first", "--models-dir", str(models)])
    (folder / "gpuwaste.toml").write_text(f'[common]\nmodels_dir = "{models}"\n', encoding="utf-8")
    (folder / "step.hlo").write_text(HLO.format(n=1500), encoding="utf-8")
    yield {}


SCENES: Final[dict[str, Callable[[Path], AbstractContextManager[Mapping[str, str]]]]] = {
    "actions": _actions,
    "calibrated": _calibrated,
    "empty": _empty,
    "log": _log,
    "login": _login,
    "month": _month,
    "program": _program,
    "trial": _trial,
}
"""Name in a page's comment -> what makes the scene; it yields what is printed in place of names of this host."""
