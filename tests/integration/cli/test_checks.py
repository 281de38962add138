"""The doctor's checks on a fake Slurm: each line says what was found and how to mend it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.cli import doctor_checks
from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.cli.checks import config as config_files
from gpuwaste.cli.checks import hub, slurm_client
from gpuwaste.cli.main import main
from gpuwaste.core.advice_config import AdvisorConfig, PluginConfig
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import NoDataError, RetryableWireError, UsageError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.site_config import CommonConfig, SlurmClientConfig
from gpuwaste.net.hub_client import StandsByError
from gpuwaste.net.munge_credentials import Munge, MungeIdentity, MungeUnreachedError
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.patience import patient
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor

pytestmark = pytest.mark.sockets

ME = "carol"
STATUS: dict[str, Any] = {"node": "gpu1", "gpus": 2, "version": "1", "jobs": [7], "outbox_rows": 0, "sent_rows": 5}
HEALTH: dict[str, Any] = {"version": "1", "protocol": [1, 1]}


def checks(
    slurm: FakeSlurm,
    hub: Exception | Mapping[str, Any] = HEALTH,
    *,
    roles: frozenset[Role] = frozenset({Role.AGENT}),
    agent: Mapping[str, Any] | Exception = STATUS,
    config: Config | None = None,
    **common: Any,
) -> dict[str, Check]:
    """Run the checks of a host and return them by name."""

    def ask_hub(config: Config, path: str) -> object:
        if isinstance(hub, Exception):
            raise hub
        return hub

    def ask_agent(_config: Config) -> dict[str, Any]:
        if isinstance(agent, Exception):
            raise agent
        return {"last_sample_us": time.time_ns() // 1000, **agent}

    config = replace(config or Config(), common=CommonConfig(**common))
    around = Surroundings(config, Path("/nowhere/gpuwaste.toml"), slurm, ask_hub, ME, roles, ask_agent)
    return {check.name: check for check in doctor_checks.run_checks(around)}


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
    assert "on the hub's host, as root: systemctl start gpuwaste-hub" in hub.mend
    assert checks(slurm())["hub"].status is Status.OK


def test_each_url_of_the_hub_has_a_line() -> None:
    """One hub serves: one that stands by beside it is fine, one that is down a warning; where none serves, all fail."""
    urls = "http://hub1:9461 http://hub2:9461"

    def ask(config: Config, path: str) -> object:
        url = config.common.hub_url
        if url in standing_by:
            raise StandsByError(f"{url}: this hub is a standby", 5)
        if url in down:
            raise RetryableWireError(f"{url}: Connection refused")
        return {**HEALTH, "now": time.time() + 60}

    def lines() -> list[tuple[str, Status, str]]:
        around = Surroundings(
            Config(common=CommonConfig(hub_url=urls)), Path("/nowhere"), slurm(), ask, ME, frozenset({Role.LOGIN})
        )
        return [(check.name, check.status, check.found) for check in hub.check(around)]

    down, standing_by = {"http://hub1:9461"}, set[str]()
    first, second, clock = lines()
    assert first == ("hub", Status.WARN, "http://hub1:9461: Connection refused")
    assert second == ("hub", Status.OK, "http://hub2:9461 answers, version 1")
    assert clock[:2] == ("clock", Status.WARN)
    standing_by = down
    assert lines()[0] == ("hub", Status.OK, "http://hub1:9461 is a standby")
    down = set(urls.split())
    assert [line[:2] for line in lines()] == [("hub", Status.FAIL)] * 2


def test_batches_that_are_not_merged_are_a_line() -> None:
    """Of hubs that stand by: none waits, some wait for a moment, some wait for too long."""

    def found(**inbox: float) -> dict[str, Check]:
        return checks(slurm(), {**HEALTH, "inbox": inbox})

    assert "inbox" not in found()
    assert found(batches=3, age_s=119)["inbox"].status is Status.OK
    late = found(batches=3, age_s=120)["inbox"]
    assert (late.status, "3 batches" in late.found, "inbox-not-merged" in late.mend) == (Status.FAIL, True, True)


def test_a_slurm_that_does_not_answer_is_a_line_and_no_traceback() -> None:
    """The first check that needs Slurm has the cause and what to do, the next ones name it; the others go on."""
    found = checks(FakeSlurm(failure="slurmctld is away"))
    assert (found["version"].status, found["version"].found) == (Status.FAIL, "slurmctld is away")
    assert "scontrol ping" in found["version"].mend
    assert (found["rights"].status, found["rights"].found) == (Status.WARN, "not checked: same cause as version")
    assert found["hub"].status is Status.OK


def test_a_missing_munge_is_one_failure(tmp_path: Path) -> None:
    """The hub cannot be queried without munge: its line names the one that has the cause and what to do."""
    socket = str(tmp_path / "none")
    with pytest.raises(MungeUnreachedError) as munge:
        Munge(socket).encode(b"x")
    found = checks(slurm(), munge.value, munge_socket=socket)
    assert found["munge"].status is Status.FAIL
    assert found["munge"].mend.startswith("as root: systemctl start munge")
    assert "start munge" not in found["munge"].found
    assert (found["hub"].status, found["hub"].found) == (Status.WARN, "not checked: same cause as munge")


def test_an_error_of_the_configuration_names_the_file_to_edit_or_its_own_remedy(tmp_path: Path) -> None:
    """A wrong value is to be edited where it is set; a file that others can read has the remedy in its own line."""
    path, tokens = tmp_path / "gpuwaste.toml", tmp_path / "tokens"
    tokens.write_text("x")
    tokens.chmod(0o644)
    path.write_text(f'[hub]\nagent_user = "nobody"\nnode_tokens_file = "{tokens}"\nmin_coverage = 2\n')
    around = Surroundings(
        load_config(path), path, slurm(), lambda *_: HEALTH, ME, frozenset({Role.HUB}), lambda _: STATUS
    )
    found = {line.found.partition(":")[0]: line.mend for line in config_files.check(around)}
    assert found == {"[hub] min_coverage is a share": f"edit {path}:4", str(tokens): ""}


def test_a_wrong_cluster_name_fails() -> None:
    """The configured name must be Slurm's."""
    assert checks(slurm(), cluster="other")["cluster"].status is Status.FAIL
    assert "cluster" not in checks(slurm(), cluster="gw")


@pytest.mark.parametrize(
    ("client", "common", "status", "words"),
    [
        ("", {}, Status.OK, "commands"),
        ("pyslurm", {}, Status.FAIL, "pyslurm"),
        ("slurmrestd", {}, Status.FAIL, "slurmrestd_url"),
        ("slurmrestd", {"slurmrestd_url": "unix:/nowhere/s"}, Status.FAIL, "is slurmrestd running?"),
        ("slurm", {}, Status.FAIL, "expected commands, slurmrestd, pyslurm"),
    ],
)
def test_the_client_that_reads_slurm_is_tried(client: str, common: dict[str, Any], status: Status, words: str) -> None:
    """What is configured answers a question, or the line says why it cannot."""
    config = Config(slurm=SlurmClientConfig(client))
    config = replace(config, common=CommonConfig(**common))
    (found,) = slurm_client.check(Surroundings(config, Path("/nowhere"), slurm(), lambda *_: HEALTH, ME))
    assert (found.status, words in found.found) == (status, True), found.found


def test_an_untried_slurm_is_a_warning() -> None:
    """A release that nobody tried is said, and no failure."""
    assert checks(slurm(SLURM_VERSION="21.08.1"))["version"].status is Status.WARN
    assert checks(slurm())["version"].status is Status.OK


def test_the_run_dir_must_be_there_and_closed(tmp_path: Path) -> None:
    """An absent directory fails with the line that makes it, one that anybody may write to with what closes it."""
    me = HubConfig(agent_user=doctor_checks.user_name())
    config = Config(hub=me)
    tmp_path.chmod(0o755)
    assert checks(slurm(), config=config, run_dir=str(tmp_path))["run dir"].status is Status.OK
    assert "mkdir" in checks(slurm(), config=config, run_dir=str(tmp_path / "none"))["run dir"].mend
    tmp_path.chmod(0o777)
    assert "others than its owner" in checks(slurm(), config=config, run_dir=str(tmp_path))["run dir"].found


@pytest.mark.parametrize(("mode", "status"), [(0o660, Status.OK), (0o666, Status.FAIL), (0o600, Status.FAIL)])
def test_a_socket_of_another_mode_fails(tmp_path: Path, mode: int, status: Status) -> None:
    """The agent's control socket is for root and its own user: any other mode is named with the right one."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "agent.sock"))
        (tmp_path / "agent.sock").chmod(mode)
        config = Config(hub=HubConfig(agent_user=doctor_checks.user_name()))
        assert checks(slurm(), config=config, run_dir=str(tmp_path))["agent.sock"].status is status


def test_the_directory_of_prolog_and_epilog_is_root_s(tmp_path: Path) -> None:
    """One that others could change gets no files."""
    jobs = tmp_path / "own"
    jobs.mkdir()
    jobs.chmod(0o755)
    config = Config(agent=AgentConfig(jobs_dir=str(jobs)))
    if os.geteuid() == 0:
        assert "prolog" not in checks(slurm(), config=config, run_dir=str(tmp_path))
    jobs.chmod(0o777)
    found = checks(slurm(), config=config, run_dir=str(tmp_path))["prolog"]
    assert (found.status, f"chown root {jobs}" in found.mend) == (Status.FAIL, True)


def test_a_missing_socket_is_one_failure(tmp_path: Path) -> None:
    """The agent that does not answer is the line with what to do, its missing socket none; a file in its place is."""
    found = checks(
        slurm(), agent=NoDataError(f"{tmp_path}/agent.sock: the agent does not answer"), run_dir=str(tmp_path)
    )
    assert found["agent"].mend == "as root: systemctl start gpuwaste-agent, and read its log"
    assert "agent.sock" not in found
    (tmp_path / "agent.sock").write_text("")
    assert "exists but is not a socket" in checks(slurm(), run_dir=str(tmp_path))["agent.sock"].found


def test_the_agent_is_asked_and_each_part_of_its_answer_judged() -> None:
    """A hung driver, a silent collector, two sources that disagree and rows that wait are a line each."""
    sound = checks(slurm())
    assert {sound[name].status for name in ("agent", "map", "outbox")} == {Status.OK}
    assert "collectors" not in sound
    old = time.time_ns() // 1000 - 3600_000_000
    assert checks(slurm(), agent={**STATUS, "last_sample_us": old})["agent"].status is Status.FAIL
    assert checks(slurm(), agent={**STATUS, "last_sample_us": None})["agent"].status is Status.WARN
    assert "nvml" in checks(slurm(), agent={**STATUS, "collectors": {"nvml": False}})["collectors"].found
    conflict = checks(slurm(), agent={**STATUS, "unmapped": {"GPU-a": "conflict"}})["map"]
    assert (conflict.status, conflict.figures) == (Status.FAIL, {"gpu_conflicts": 1.0})
    assert "GPU-a" in conflict.found
    silent = {"facts": {"sockets": "/spool: cannot be read", "prolog": "ok"}}
    assert checks(slurm(), agent={**STATUS, **silent})["map"].status is Status.WARN
    modern = {"facts": {"cgroup": "no cgroup v1 device lists on this node", "prolog": "ok"}}
    assert checks(slurm(), agent={**STATUS, **modern})["map"].status is Status.OK
    waiting = {"outbox_rows": 9, "hub": "connection refused"}
    assert checks(slurm(), agent={**STATUS, **waiting})["outbox"].status is Status.WARN
    assert checks(slurm(), agent=NoDataError("does not answer"))["agent"].status is Status.FAIL
    assert checks(slurm(), agent=UsageError("only root"))["agent"].status is Status.WARN


def test_clocks_are_compared_with_the_hubs() -> None:
    """A second is nothing, ten are a warning, ten minutes a failure, in both directions; an old hub tells no time."""
    for ahead_s, status in (
        (1, Status.OK),
        (10, Status.WARN),
        (-10, Status.WARN),
        (600, Status.FAIL),
        (-600, Status.FAIL),
    ):
        found = checks(slurm(), {**HEALTH, "now": time.time() + ahead_s})["clock"]
        assert found.status is status, ahead_s
        assert found.figures["clock_skew_s"] == pytest.approx(ahead_s if abs(ahead_s) > 1 else 1, abs=3)
    assert "clock" not in checks(slurm())


def test_a_hub_too_far_from_our_protocol_says_which_side_to_update() -> None:
    """Protocols above and below ours fail, and name what is to be updated."""
    assert checks(slurm(), {"protocol": [7, 9]})["hub"].mend == "update gpuwaste here"
    assert checks(slurm(), {"protocol": [0, 0]})["hub"].mend == "update the hub"


def test_accounting_and_model_are_judged_where_the_hub_or_an_advisor_runs() -> None:
    """Accounting that is behind or fails, a model of a hundred days and a broken one each have their line."""
    role = frozenset({Role.HUB})

    def found(
        accounting: Mapping[str, Any] | None = None, prediction: Mapping[str, Any] | None = None
    ) -> dict[str, Check]:
        return checks(slurm(), {**HEALTH, "accounting": accounting or {}, "prediction": prediction or {}}, roles=role)

    assert found({"lag_s": 60.0, "error": ""})["account"].status is Status.OK
    assert found({"lag_s": 1800.0, "error": ""})["account"].status is Status.WARN
    assert found({"lag_s": 4e5, "error": ""})["account"].status is Status.WARN
    assert found({"lag_s": 60.0, "error": "slurmdbd is away"})["account"].status is Status.FAIL
    assert found()["model"].status is Status.OK
    day_s = 86400
    model = {"model": "m", "model_hash": "ab" * 32, "created": int(time.time()) - 3 * day_s}
    assert "3 days old" in found(prediction=model)["model"].found
    assert found(prediction={**model, "created": int(time.time()) - 100 * day_s})["model"].status is Status.WARN
    noted = found(prediction={**model, "note": "trained with another rule"})["model"]
    assert (noted.status, noted.mend) == (Status.WARN, "gpuwaste model train")
    assert "trained with another rule" in noted.found
    assert found(prediction={**model, "error": "no valid bundle"})["model"].status is Status.FAIL


def advisor_config(directory: Path, **plugin: Any) -> Config:
    """Return a configuration whose advisor listens in a directory."""
    return Config(
        advisor=AdvisorConfig(
            socket=str(directory / "advisor.sock"), policies_dir=str(directory / "policies.d"), history_every_s=0.05
        ),
        plugin=PluginConfig(kill_switch=str(directory / "disable"), advisor_user=doctor_checks.user_name(), **plugin),
    )


@pytest.mark.parametrize(
    ("as_of", "status"),
    [(0, Status.WARN), (10, Status.OK), (2000, Status.WARN), (7000, Status.FAIL)],
)
def test_the_advisor_is_asked_as_a_plugin_asks(tmp_path: Path, as_of: int, status: Status) -> None:
    """A ping has a reply that tells how far the history is known; its age is judged by [advisor] stale_s."""

    def answer(_request: dict[str, Any]) -> bytes:
        return encode_reply("", "pass", as_of=int(time.time()) - as_of if as_of else 0)

    with ScriptedAdvisor(tmp_path / "advisor.sock", answer) as scripted:
        found = checks(slurm(), roles=frozenset({Role.ADVISOR}), config=advisor_config(tmp_path))
    assert found["advisor"].status is Status.OK
    assert found["history"].status is status
    asked = 3 if status is Status.FAIL else 1  # what is old may be on its way
    assert [request["op"] for request in scripted.requests] == ["ping"] * asked


def test_a_history_that_is_being_read_is_waited_for(tmp_path: Path) -> None:
    """An advisor that has just been started and knows more at the next question is well."""
    ages = iter([604_805, 5])

    def answer(_request: dict[str, Any]) -> bytes:
        return encode_reply("", "pass", as_of=int(time.time()) - next(ages))

    with ScriptedAdvisor(tmp_path / "advisor.sock", answer):
        found = checks(slurm(), roles=frozenset({Role.ADVISOR}), config=advisor_config(tmp_path))
    assert found["history"].status is Status.OK


@pytest.mark.parametrize(
    ("ours", "hubs", "status"),
    [("ab" * 32, "ab" * 32, Status.OK), ("ab" * 32, "cd" * 32, Status.WARN), ("", "cd" * 32, Status.WARN)],
)
def test_an_advisor_with_another_model_than_the_hub_is_told(
    tmp_path: Path, ours: str, hubs: str, status: Status
) -> None:
    """The hash that the advisor names is compared with the hub's; an advisor of before names none."""
    health = {**HEALTH, "prediction": {"model": "m", "model_hash": hubs, "created": int(time.time())}}
    role, config = frozenset({Role.ADVISOR}), advisor_config(tmp_path)
    now = int(time.time())
    with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: encode_reply("", "pass", as_of=now, model=ours)):
        found = checks(slurm(), health, roles=role, config=config)["champion"]
        assert "champion" not in checks(slurm(), RetryableWireError("away"), roles=role, config=config)
    assert found.status is status
    assert (ours[:12] or "no model") in found.found
    assert hubs[:12] in found.found
    with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: encode_reply("", "pass", as_of=now)):
        assert "champion" not in checks(slurm(), health, roles=role, config=config)


def test_no_advisor_a_strange_one_and_a_silent_one_fail(tmp_path: Path) -> None:
    """Nobody at the socket, and somebody who does not speak our frames, are named."""
    role = frozenset({Role.ADVISOR})
    config = advisor_config(tmp_path)
    assert checks(slurm(), roles=role, config=config)["advisor"].status is Status.FAIL
    with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        assert "is this the advisor" in checks(slurm(), roles=role, config=config)["advisor"].mend


def test_the_kill_switch_is_a_warning(tmp_path: Path) -> None:
    """While the file is there, a line says so and how to go on."""
    role = frozenset({Role.ADVISOR})
    assert "switch" not in checks(slurm(), roles=role, config=advisor_config(tmp_path))
    (tmp_path / "disable").touch()
    found = checks(slurm(), roles=role, config=advisor_config(tmp_path))["switch"]
    assert (found.status, found.mend) == (Status.WARN, f"rm {tmp_path}/disable")


def test_a_plugin_that_is_named_must_be_there(tmp_path: Path) -> None:
    """Named and missing is a failure that says what keeps slurmctld from starting; not named is a warning."""
    role = frozenset({Role.ADVISOR})
    config = advisor_config(tmp_path)
    named = slurm(JobSubmitPlugins="lua,gpuwaste", PluginDir=f"/nowhere:{tmp_path}")
    assert "cannot start" in checks(named, roles=role, config=config)["plugin"].mend
    (tmp_path / "job_submit_gpuwaste.so").write_bytes(b"no ELF file")
    assert "not a Slurm plugin" in checks(named, roles=role, config=config)["plugin"].found
    assert checks(slurm(JobSubmitPlugins="(null)"), roles=role, config=config)["plugin"].status is Status.WARN
    lua = slurm(JobSubmitPlugins="lua", SLURM_CONF=str(tmp_path / "slurm.conf"))
    assert checks(lua, roles=role, config=config)["plugin"].status is Status.FAIL
    (tmp_path / "job_submit.lua").write_text('require("gpuwaste")')
    assert checks(lua, roles=role, config=config)["plugin"].status is Status.OK


def test_a_plugin_that_slurmctld_has_not_loaded_yet(tmp_path: Path) -> None:
    """slurm.conf, or a file that it includes, names the plugin, slurmctld runs without it: restart it."""
    role, config = frozenset({Role.ADVISOR}), advisor_config(tmp_path)
    (tmp_path / "slurm.conf").write_text("ClusterName=gw\nInclude plugins.conf\n")
    for written, words in (
        ("JobSubmitPlugins=lua,gpuwaste # ours\n", "as root: systemctl restart slurmctld"),
        ("jobsubmitplugins = job_submit/gpuwaste\n", "as root: systemctl restart slurmctld"),
        ("#JobSubmitPlugins=gpuwaste\n", "JobSubmitPlugins=gpuwaste"),
        ("JobSubmitPlugins=gpuwaste\nJobSubmitPlugins=throttle\n", "JobSubmitPlugins=gpuwaste"),
    ):
        (tmp_path / "plugins.conf").write_text(written)
        running = slurm(JobSubmitPlugins="(null)", SLURM_CONF=str(tmp_path / "slurm.conf"))
        found = checks(running, roles=role, config=config)["plugin"]
        assert (found.status, found.mend) == (Status.WARN, words), written


def test_policies_that_cannot_be_used_fail(tmp_path: Path) -> None:
    """A slip in a policy is named with its file; none at all is a fresh install's shadow."""
    role, config = frozenset({Role.ADVISOR}), advisor_config(tmp_path)
    assert "shadow" in checks(slurm(), roles=role, config=config)["policies"].found
    (tmp_path / "policies.d").mkdir()
    (tmp_path / "policies.d" / "10-slip.toml").write_text('[policy]\nmod = "warn"\n')
    assert "10-slip.toml" in checks(slurm(), roles=role, config=config)["policies"].found


def test_a_disk_that_is_not_there_or_full(tmp_path: Path) -> None:
    """Free bytes of the state directory's file system are told, also before the directory is there."""
    config = Config(agent=AgentConfig(state_dir=str(tmp_path / "not" / "yet")))
    found = checks(slurm(), config=config)["disk"]
    assert found.figures["disk_agent_free_b"] > 0


def test_a_check_that_hangs_costs_its_own_line_alone() -> None:
    """A hub that never answers fails at the deadline; the other lines are there."""
    never = threading.Event()

    def hang(config: Config, path: str) -> object:
        never.wait(120)
        return {}

    around = Surroundings(Config(), Path("/nowhere"), slurm(("someone",)), hang, ME, frozenset({Role.HUB}))
    found = {check.name: check for check in doctor_checks.run_checks(around, 3)}
    never.set()
    assert found["hub"].found == "not finished within 3 s"
    assert found["rights"].status is Status.OK


def test_what_loading_took_counts() -> None:
    """Of the command's time the checks have what is left: on a slow host each is one line, and none is waited for."""
    never = threading.Event()

    def hang(config: Config, path: str) -> object:
        never.wait(120)
        return {}

    around = Surroundings(Config(), Path("/nowhere"), slurm(("someone",)), hang, ME, frozenset({Role.HUB}))
    began = time.monotonic()
    found = list(doctor_checks.run_checks(around, 60, 59.9))
    assert time.monotonic() - began < 30
    never.set()
    late = next(check for check in found if check.found == "not finished within 60 s")  # on a slow host not the hub's
    assert "use --timeout" in late.mend
    hub = next(check for check in found if check.name == "hub")
    assert hub.found in {late.found, f"not checked: same cause as {late.name}"}


def test_a_directory_service_that_hangs_ends_the_command_in_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any check runs the user's name is asked for: where nothing answers the command ends with one line."""
    never = threading.Event()
    monkeypatch.setattr("gpuwaste.cli.doctor_checks.user_name", lambda: never.wait(120))
    assert main(["doctor", "--timeout", "1"]) == 1
    never.set()
    assert "not finished within 1 s" in capsys.readouterr().err


def test_a_node_whose_munged_is_a_loopback_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub elsewhere would reject its rows: the doctor says so on the node, with the line that mends it."""

    class LoopbackMunge(Munge):
        def __init__(self, _socket: str = "") -> None:
            pass

        def encode(self, payload: bytes) -> str:
            return payload.decode()

        def decode(self, credential: str) -> MungeIdentity:
            return MungeIdentity(463, 463, "127.0.1.1", 0, credential.encode())

    monkeypatch.setattr("gpuwaste.cli.checks.munge.Munge", LoopbackMunge)
    here = socket.gethostname().partition(".")[0]
    cluster = slurm(("someone",))
    cluster.node_list = [Node("gpu1", hostname=here, address="10.1.0.17")]
    found = checks(cluster)["munge"]
    assert found.status is Status.FAIL
    assert "127.0.1.1" in found.found
    assert 'OPTIONS="--origin=10.1.0.17"' in found.mend
    assert checks(cluster, roles=frozenset({Role.AGENT, Role.HUB}))["munge"].status is Status.OK
    cluster.node_list = [Node("gpu1", hostname=here, address="127.0.1.1")]
    assert checks(cluster)["munge"].status is Status.OK


_BUSY = """
import sys
import duckdb
from gpuwaste.cli import hub_access

def ask(*_):
    connection = duckdb.connect()
    while True:
        connection.execute("select 1").fetchall()

hub_access.ask_hub = ask
from gpuwaste.cli.main import main
sys.exit(main(["doctor", "--role", "hub", "--timeout", "2", "--config", sys.argv[1]]))
"""


def test_a_check_that_is_left_behind_in_c_changes_no_exit_code(tmp_path: Path) -> None:
    """The doctor ends with its own code, not by a signal: the interpreter's end aborts a thread that is in C++ code."""
    config = tmp_path / "gpuwaste.toml"
    config.touch()
    done = subprocess.run(
        [sys.executable, "-c", _BUSY, str(config)], capture_output=True, text=True, timeout=patient(60), check=False
    )
    assert "not finished within 2 s" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")


def test_roles_are_what_is_installed_or_has_run_here(tmp_path: Path) -> None:
    """Units make a role, and so do state and sockets; a host with none is a login host."""
    config = Config(
        common=CommonConfig(run_dir=str(tmp_path)),
        agent=AgentConfig(state_dir=str(tmp_path / "agent")),
        hub=HubConfig(state_dir=str(tmp_path / "hub")),
        advisor=AdvisorConfig(state_dir=str(tmp_path / "advisor"), socket=str(tmp_path / "advisor.sock")),
    )
    units = tmp_path / "units"
    units.mkdir()
    assert doctor_checks.roles_here(config, [units]) == {Role.LOGIN}
    (units / "gpuwaste-agent.service").touch()
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "hub.duckdb").touch()
    assert doctor_checks.roles_here(config, [units]) == {Role.AGENT, Role.HUB}


def test_every_check_says_where_it_belongs() -> None:
    """Each file has a place of its own, a name and roles; the docstring is its sentence."""
    found = doctor_checks.modules()
    places = {module.PLACE for module in found}
    assert len(places) == len(found)
    assert len(found) > 10
    assert all(module.NAME and module.__doc__ and module.ROLES.issubset(Role) for module in found)


def test_nagios_has_one_line_with_figures_and_the_worst_code() -> None:
    """One line, at most three of the bad ones by name, worst first, no | but the separator; 0, 1 or 2."""
    ok = Check("a", Status.OK, "fine", figures={"disk_hub_free_b": 1.5e12})
    warn = Check("b", Status.WARN, "so|so\nmore")
    fail = Check("c", Status.FAIL, "bad")
    assert doctor_checks.as_nagios([ok]) == (
        "GPUWASTE OK - 1 checks | 'ok'=1 'warn'=0 'fail'=0 'disk_hub_free_b'=1.5e+12\n",
        0,
    )
    line, code = doctor_checks.as_nagios([ok, warn, warn, warn, fail])
    assert code == 2
    assert line.startswith(
        "GPUWASTE CRITICAL - c: bad; b: so/so more; b: so/so more; 1 more | 'ok'=1 'warn'=3 'fail'=1"
    )
    assert doctor_checks.as_nagios([ok, warn])[1] == 1


def test_json_holds_every_line() -> None:
    """Name, status, what was found, how to mend it, and figures, with the host's roles and the worst status."""
    text = doctor_checks.as_json("gpu1", {Role.AGENT}, [Check("a", Status.WARN, "f", "m", {"x_s": 1.0})])
    assert json.loads(text) == {
        "document": "doctor",
        "host": "gpu1",
        "roles": ["agent"],
        "status": "warn",
        "checks": [{"name": "a", "status": "warn", "found": "f", "mend": "m", "figures": {"x_s": 1.0}}],
    }


def test_a_configuration_that_cannot_be_read_is_unknown_to_nagios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--nagios answers with its own line and 3 where nothing could be looked at; without it, one line and 2."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text("[hubb]\n")
    assert main(["doctor", "--nagios", "--config", str(path)]) == 3
    assert capsys.readouterr().out.startswith("GPUWASTE UNKNOWN - ")
    assert main(["doctor", "--config", str(path)]) == 2
