"""What a real sbatch prints is what `gpuwaste predict` and `policy explain` say before: 20 submissions, drawn."""

import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.system.test_submit_advice import (
    FAILS,
    FAILURE,
    GPUS,
    SURE,
    WASTES,
    name,
    policies,
    run_jobs,
    site,
    submit,
    user,
    wait_said,
)

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site

__all__ = ["name", "site", "user"]  # fixtures
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # twenty submissions, each asked for in five ways
SUBMISSIONS: Final = 20
_UNBOUNDED: Final = "[budget]\nrejects_per_user_per_day = 1000\n[override]\nper_user_per_day = 1000\n"
Words = tuple[list[str], ...]
_OURS: Final = re.compile(r"gpuwaste: .*")
_PARTITIONS: Final[Words] = ([], ["-p", "gpu"], ["-p", "whole"], ["-p", "gpu,whole"])
_SHARING: Final[Words] = ([], [], ["--exclusive"], ["--exclusive=user"])
_BOTH: Final[Words] = (["--exclusive", "--oversubscribe"],)  # 22.05 takes the two together, later releases refuse them
_GPUS: Final[Words] = (["--gres=gpu:a100:4"], ["--gres=gpu:4"], ["--gpus=4"], ["-N2", "--gpus-per-node=2"], [])
_OTHERS: Final[Words] = ([], ["--array=0-3"], ["-t", "30"], ["--comment=gpuwaste:override=repaired"], ["-n", "2"])


def _draw(rng: random.Random, names: tuple[str, str], release: tuple[int, int]) -> tuple[str, list[str]]:
    """Draw a job's name and its options."""
    sharing = (*_SHARING, *(_BOTH if release == (22, 5) else ()))
    options = [word for choice in (_PARTITIONS, sharing, _GPUS, _OTHERS) for word in rng.choice(choice)]
    return rng.choice(names), options


def _asked(site: Site, user: str, script: Path, job: str, options: list[str], *command: str) -> dict[str, Any]:
    """Return the document of a command that is asked as a user asks it."""
    config = ("--json", "--config", str(site.config_path("hub")))
    argv = site.runtime.command(*command, *config, "--", f"--job-name={job}", *options, str(script))
    done = site.cluster.run(argv, user, env=site.runtime.env)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _wait_hub(site: Site, user: str, script: Path, asked: tuple[str, list[str]], action: str) -> None:
    """Wait until the hub has heard of the jobs as the advisor has."""

    def says() -> bool:
        (predicted,) = _asked(site, user, script, *asked, "predict")["predictions"]
        return bool(predicted["policy"]["action"] == action)

    wait_until(says, 60, f"the hub to say {action} of {asked[0]}", poll_s=1.0)


def test_sbatch_prints_what_was_said_before(site: Site, user: str, name: str) -> None:
    """Of a name that wastes GPUs and one that fails, with and without whole nodes: the same lines, refused or not."""
    seed = int(os.environ.get("GPUWASTE_TEST_SEED") or random.SystemRandom().randrange(1_000_000))
    sys.stdout.write(f"GPUWASTE_TEST_SEED={seed}\n")
    rng = random.Random(seed)
    strict = f'[policy]\nmode = "reject"\n[when]\nmin_nodes = 2\n{FAILURE}{SURE}{_UNBOUNDED}'
    policies(site, a=strict, b=f'[policy]\nmode = "warn"\n{GPUS}{FAILURE}')
    wide, fails = f"{name}-wide", f"{name}-fails"
    scripts = {wide: f"#!/bin/bash\n{site.load(WASTES)}\n", fails: FAILS}
    files = {}
    for job, text in scripts.items():
        files[job] = site.cluster.directory / "home" / user / f"{job}.sh"
        files[job].write_text(text)
        files[job].chmod(0o644)
    for number in run_jobs(site, user, wide, scripts[wide], gres="gpu:a100:4"):
        site.cluster.wait_accounted(number, 120)
        site.wait_reported(number, 4)
    for number in run_jobs(site, user, fails, FAILS):
        site.cluster.wait_accounted(number)
    wait_said(site, user, wide, scripts[wide], "--gres=gpu:a100:4")
    wait_said(site, user, fails, FAILS, "-N2", refused=True)
    _wait_hub(site, user, files[wide], (wide, ["--gres=gpu:a100:4"]), "warn")
    _wait_hub(site, user, files[fails], (fails, ["-N2"]), "reject")
    drawn = [(wide, ["--gres=gpu:4"]), (wide, ["--gres=gpu:4", "--exclusive"]), (fails, ["-N2"])]
    drawn += [(fails, ["-N2", "--comment=gpuwaste:override=repaired"])]
    drawn += [_draw(rng, (wide, fails), site.cluster.release) for _ in range(SUBMISSIONS - len(drawn))]
    told = {}
    for job, options in drawn:
        (predicted,) = _asked(site, user, files[job], job, options, "predict")["predictions"]
        (explained,) = _asked(site, user, files[job], job, options, "policy", "explain")["decisions"]
        said = submit(site, user, job, scripts[job], *options)
        lines = _OURS.findall(said.text)
        shown = explained["action"] in {"warn", "reject"}
        where = f"{job} {options}: {said}"
        assert lines == predicted["policy"]["lines"], where
        assert lines == (explained["lines"] if shown else []), where
        assert (said.job is None) == (explained["action"] == predicted["policy"]["action"] == "reject"), where
        told[job, tuple(options)] = lines
    assert told[wide, ("--gres=gpu:4",)]
    assert not told[wide, ("--gres=gpu:4", "--exclusive")]
