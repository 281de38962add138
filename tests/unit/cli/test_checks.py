"""The doctor's checks on a fake Slurm: each line says what was found and how to mend it."""

from pathlib import Path
from typing import Any

from gpuwaste.cli.checks import Check, Status, Surroundings, run_checks
from gpuwaste.core.config import CommonConfig, Config
from gpuwaste.core.errors import RetryableWireError
from gpuwaste.slurm.scontrol import RunningJob
from gpuwaste.testing.fake_slurm import FakeSlurm

ME = "carol"


def checks(slurm: FakeSlurm, hub: Exception | None = None, **common: Any) -> dict[str, Check]:
    """Run all checks and return them by name."""

    def ask_hub(config: Config, path: str) -> object:
        if hub is not None:
            raise hub
        return {}

    around = Surroundings(Config(common=CommonConfig(**common)), Path(__file__), slurm, ask_hub, ME)
    return {check.name: check for check in run_checks(around)}


def slurm(users: tuple[str, ...] = (), **settings: str) -> FakeSlurm:
    """Return a cluster on which these users have jobs."""
    jobs = [RunningJob(7, "7", "x", user, 1001, "", "gpu", "", "RUNNING", 1, 2, None, 0, "gpu1", 1) for user in users]
    return FakeSlurm(settings={"ClusterName": "gw", "SLURM_VERSION": "22.05.8", **settings}, running=jobs)


def test_rights_are_proven_on_another_users_job() -> None:
    """Seeing another user's job is the proof; one's own is none."""
    assert checks(slurm(("someone",)))["rights"].status is Status.OK
    assert checks(slurm((ME,)))["rights"].status is Status.WARN


def test_private_data_without_rights_fails_and_says_what_to_grant() -> None:
    """PrivateData=jobs hides jobs without an error: for an ordinary user that is a failure with its sacctmgr line."""
    rights = checks(slurm(PrivateData="jobs,usage"))["rights"]
    assert rights.status is Status.FAIL
    assert rights.mend == "sacctmgr modify user carol set adminlevel=Operator"


def test_a_missing_hub_fails_with_how_to_start_it() -> None:
    """No hub: the line names the address and the command."""
    hub = checks(slurm(), RetryableWireError("http://127.0.0.1:9461: connection refused"))["hub"]
    assert hub.status is Status.FAIL
    assert "gpuwaste hub run" in hub.mend
    assert checks(slurm())["hub"].status is Status.OK


def test_a_slurm_that_does_not_answer_is_a_line_and_no_traceback() -> None:
    """Every check that needs Slurm fails with its words; the others go on."""
    found = checks(FakeSlurm(failure="slurmctld is away"))
    assert found["version"].status is Status.FAIL
    assert "slurmctld is away" in found["rights"].found
    assert "hub" in found


def test_a_wrong_cluster_name_fails() -> None:
    """The configured name must be Slurm's."""
    assert checks(slurm(), cluster="other")["cluster"].status is Status.FAIL
    assert "cluster" not in checks(slurm(), cluster="gw")


def test_the_run_dir_must_be_there(tmp_path: Path) -> None:
    """A run directory that is absent fails with the line that makes it."""
    assert checks(slurm(), run_dir=str(tmp_path))["run dir"].status is Status.OK
    assert "mkdir" in checks(slurm(), run_dir=str(tmp_path / "none"))["run dir"].mend


def test_an_untried_slurm_is_a_warning() -> None:
    """A release that nobody tried is said, and no failure."""
    assert checks(slurm(SLURM_VERSION="21.08.1"))["version"].status is Status.WARN
    assert checks(slurm())["version"].status is Status.OK
