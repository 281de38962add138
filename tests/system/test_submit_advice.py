"""What a user sees at sbatch, end to end: real jobs, agents, hub, advisor and slurmctld with the C plugin.

Each test has users and job names that nobody has ever heard of, so that they share one site and its history.
"""

import json
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_file import campaign_from_toml
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.cluster_users import passing_user
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.sim_build import build_native
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # jobs fail until the advisor speaks of them
WASTES = "--per-gpu '0=8:92:20000' --for 8"  # one of the job's GPUs works
USES = "--phase 8:92:20000"
FAILS = "#!/bin/bash\n# epoch 7\nexit 3\n"
FOUR = "--gres=gpu:a100:4"
JOBS = 3  # from as many ended jobs on history alone says something
TOKEN = re.compile(r"(?:^|;)gw=([0-9a-z]{16})$")
GPUS = "[targets.gpus]\nwarn = 0.5\nbasis = 2\n"
FAILURE = "[targets.failure]\nwarn = 0.6\nreject = 0.7\n"
SURE = "[sample]\npass_ratio = 0.0\n"  # no reject passes at random
WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Said:
    """What sbatch answered: the job's id, None where it was refused, and the lines at the terminal."""

    job: int | None
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """One cluster with the plugin, agents, hub and advisor, as a fresh install has them: without any policy."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw", dir="/tmp")))
        folder.chmod(0o755)
        variant = Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins(out=folder / "plugins")))
        cluster = stack.enter_context(LoopbackCluster(folder / "c", variant, remove=True))
        # What is said is the subject here: on a busy host five milliseconds may pass before anybody is awake.
        options = SiteOptions(interval_s=1.0, ship_every_s=2.0, plugin={"deadline_us": 1_000_000})
        made = stack.enter_context(Site(cluster, build_native(), options))
        made.start_advisor()
        yield made


@pytest.fixture
def user(site: Site) -> Iterator[str]:
    """Give a user whom nobody knows; his jobs end with the test."""
    with passing_user(site.cluster) as name:
        yield name
        site.cluster.cancel_jobs()


@pytest.fixture
def other(site: Site) -> Iterator[str]:
    """Give another one."""
    with passing_user(site.cluster) as name:
        yield name
        site.cluster.cancel_jobs()


@pytest.fixture
def name() -> str:
    """Draw a job name."""
    return f"job-{secrets.token_hex(4)}"


def submit(site: Site, user: str, name: str, script: str, *options: str) -> Said:
    """Submit as a user does; the job is held, since the answer alone matters."""
    argv = ["sbatch", "--parsable", "--hold", "--output=/dev/null", f"--job-name={name}", *options]
    done = site.cluster.run(argv, user, stdin=script, check=False)
    assert (done.returncode == 0) == bool(done.stdout), done
    return Said(int(done.stdout) if done.stdout else None, tuple(done.stderr.splitlines()))


def run_jobs(site: Site, user: str, name: str, script: str, **options: str | int | bool) -> list[int]:
    """Submit JOBS jobs of a script; they run to their end."""
    return [site.cluster.sbatch(script, user, job_name=name, output="/dev/null", **options) for _ in range(JOBS)]


def policies(site: Site, **texts: str) -> None:
    """Replace the policies and have the advisor read them."""
    site.write_policies({f"{name}.toml": text for name, text in texts.items()})
    assert site.advisor is not None
    site.advisor.signal(signal.SIGHUP)


def wait_said(
    site: Site, user: str, name: str, script: str, *options: str, refused: bool = False, timeout_s: float = WAIT_S
) -> Said:
    """Submit until the terminal shows something, or until the job is refused: the advisor hears of jobs a bit later."""
    last = Said(None, ())

    def said() -> bool:
        nonlocal last
        last = submit(site, user, name, script, *options)
        return bool(last.lines) and refused == (last.job is None)

    wait_until(said, timeout_s, f"sbatch to say something of {name}", lambda: repr(last), poll_s=1.0)
    return last


def verdicts(site: Site, *words: str, user: str = "root") -> list[dict[str, Any]]:
    """Return the verdicts that `gpuwaste policy verdicts` shows a user; none is exit code 3."""
    done = site.gpuwaste("policy", "verdicts", *words, "--json", user=user, check=False)
    assert done.returncode in {0, 3}, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["verdicts"]
    return found


def verdict_of(site: Site, job: int) -> dict[str, Any]:
    """Return the verdict of a job, once the hub has it, found by the token in its admin_comment."""
    comment = site.cluster.show_job(job)[0].get("AdminComment", "")
    token = TOKEN.search(comment)
    assert token, comment
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = [row for row in verdicts(site) if row["id"] == token[1]]
        return bool(found)

    wait_until(there, WAIT_S, f"the hub to have the verdict {token[1]} of job {job}", poll_s=0.5)
    return found[0]


def forget(site: Site) -> None:
    """Remove all that hub and advisor know and start them again; accounting still has every job."""
    assert site.advisor is not None
    assert site.hub is not None
    site.advisor.stop()
    site.hub.stop()
    for folder in ("hub", "advisor"):
        for path in (site.directory / folder).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    site.start_hub()
    site.start_advisor()


def test_his_own_waste_is_told_to_the_user_and_to_nobody_else(site: Site, user: str, other: str, name: str) -> None:
    """Who used 1 of 4 GPUs reads that and the exact option; who used all, or has no history any more, reads nothing."""
    policies(site, tell=f'[policy]\nmode = "warn"\n{GPUS}')
    wasting, using = (f"#!/bin/bash\n{site.load(load)}\n" for load in (WASTES, USES))
    wasted = run_jobs(site, user, name, wasting, gres="gpu:a100:4")
    used = run_jobs(site, other, name, using, gres="gpu:a100:4")
    for job in (*wasted, *used):
        site.cluster.wait_accounted(job, 120)
        site.wait_reported(job, 4)
    said = wait_said(site, user, name, wasting, FOUR)
    assert said.job
    assert len(said.lines) <= 3
    assert f"your last {JOBS} jobs named {name} used 1 of 4 GPUs" in said.text
    assert "--gres=gpu:a100:1" in said.text
    control = submit(site, other, name, wasting, FOUR)
    assert control.job
    assert control.lines == ()
    verdict = verdict_of(site, control.job)
    assert verdict["action"] == verdict["would_be"] == "pass"
    forget(site)
    again = submit(site, user, name, wasting, FOUR)
    assert again.job
    assert again.lines == ()
    assert verdict_of(site, again.job)["would_be"] == "pass"


def running_campaign(what: str, back: str, told: str) -> tuple[str, str]:
    """Return a key and the file of a campaign of this week that holds one user back and tells another."""
    monday = date.today() - timedelta(days=date.today().weekday())  # noqa: DTZ011 the site's own day
    text = f'what = ["{what}"]\nstart = {monday}\nend = {monday + timedelta(days=13)}\nheld_back = 0.5\n'
    campaign = campaign_from_toml(text.encode(), "trial.toml", "trial")
    for number in range(1000):
        assignment = Assignment(f"a key of this test, number {number}".encode())
        if assignment.notified_from(campaign, back) and not assignment.notified_from(campaign, told):
            return f"a key of this test, number {number}", text
    raise AssertionError("no key in a thousand")


def test_who_a_campaign_holds_back_sees_nothing(site: Site, user: str, other: str, name: str) -> None:
    """Of two users whose jobs fail alike one is warned; the other's sbatch, verdicts and prediction show nothing."""
    policies(site, tell=f'[policy]\nmode = "warn"\n{FAILURE}')
    for one in (user, other):
        for job in run_jobs(site, one, name, FAILS):
            site.cluster.wait_accounted(job)
    warned = wait_said(site, user, name, FAILS)
    key, text = running_campaign("policy:tell", user, other)
    site.write_campaigns(key, {"trial.toml": text})
    held = [warned]

    def silent() -> bool:
        held[0] = submit(site, user, name, FAILS)
        return not held[0].lines

    wait_until(silent, WAIT_S, "the advisor to hold the policy back", lambda: repr(held[0]), poll_s=1.0)
    assert wait_said(site, other, name, FAILS).lines[0] == warned.lines[0]
    assert held[0].job
    verdict, before = verdict_of(site, held[0].job), verdict_of(site, warned.job or 0)
    assert (verdict["action"], verdict["would_be"], verdict["campaign"]) == ("pass", before["would_be"], "trial")
    assert f"{JOBS} of your last {JOBS} jobs named {name} failed" in verdict["lines"][0]
    assert held[0].job not in {job for row in verdicts(site, user=user) for job in map(int, row["job_ids"])}
    script = site.directory / "predicted.sh"
    script.write_text(FAILS)
    told = site.gpuwaste("predict", "--job-name", name, str(script), user=user, check=False)
    for word in ("tell", "trial", "held", "campaign"):
        assert word not in told.stdout, told.stdout
    shutil.rmtree(site.directory / "campaigns.d")


@pytest.mark.core
def test_a_repeated_failure_is_warned_of_refused_and_overridden(site: Site, user: str, name: str) -> None:
    """The same script warns under warn and is refused under reject; a changed one is warned, an override passes."""
    policies(site, tell=f'[policy]\nmode = "warn"\n{FAILURE}')
    for job in run_jobs(site, user, name, FAILS):
        site.cluster.wait_accounted(job)
    failed = f"{JOBS} of your last {JOBS} jobs named {name} failed"
    warned = wait_said(site, user, name, FAILS)
    assert failed in warned.text

    policies(site, refuse=f'[policy]\nmode = "reject"\n{FAILURE}{SURE}')
    refused = wait_said(site, user, name, FAILS, refused=True)
    assert failed in refused.text
    assert "override" in refused.text
    assert name not in site.cluster.run(["squeue", "-h", "-o", "%j", "-u", user, "-t", "R,CG"]).stdout

    changed = submit(site, user, name, f"{FAILS}# mended\n")
    assert changed.job, changed.text
    assert failed in changed.text

    passed = submit(site, user, name, FAILS, "--comment=gpuwaste:override=the data is mended")
    assert passed.job, passed.text
    verdict = verdict_of(site, passed.job)
    assert (verdict["would_be"], verdict["held"]) == ("reject", "override")
    assert verdict["override"] == "the data is mended"


def fail_again(site: Site, user: str, name: str) -> list[int]:
    """Run failing jobs to their end, wait until the advisor would speak of them, and run as many again."""
    for job in run_jobs(site, user, name, FAILS):
        site.cluster.wait_accounted(job)
    seen: dict[str, Any] = {}

    def would_speak() -> bool:
        said = submit(site, user, name, FAILS)
        assert said.job, said.text
        seen.update(verdict_of(site, said.job))
        return bool(seen["would_be"] != "pass")

    wait_until(would_speak, WAIT_S, f"a verdict on {name} that says something", lambda: repr(seen), poll_s=1.0)
    assert seen["user"] == user  # nobody else's failures spoke
    again = run_jobs(site, user, name, FAILS)
    for job in again:
        site.cluster.wait_accounted(job)
    return again


@pytest.mark.core
def test_a_fresh_install_records_and_says_nothing(site: Site, user: str, name: str, tmp_path: Path) -> None:
    """Without policies nobody reads anything anywhere; the hub has what would have been said, and a replay tells it."""
    policies(site)
    jobs = fail_again(site, user, name)
    said = submit(site, user, name, FAILS)
    assert said.job
    assert said.lines == ()
    verdict = verdict_of(site, said.job)
    assert (verdict["action"], verdict["held"], verdict["mode"]) == ("pass", "shadow", "shadow")
    assert verdict["would_be"] in {"warn", "reject"}
    assert verdict["lines"]
    assert TOKEN.fullmatch(site.cluster.show_job(said.job)[0].get("AdminComment", ""))
    for words in (("job", str(jobs[0])), ("job", str(said.job)), ("report",), ("policy", "verdicts")):
        for form in ((), ("--json",)):
            done = site.gpuwaste(*words, *form, user=user, check=False)
            for secret in ("shadow", "gw=", verdict["id"], *verdict["lines"]):
                assert secret not in done.stdout + done.stderr, (words, secret)
    assert verdicts(site, user=user) == []

    (tmp_path / "refuse.toml").write_text(f'[policy]\nmode = "reject"\n{FAILURE}{SURE}')
    refused: list[dict[str, Any]] = []

    def told() -> bool:
        replay = site.json("policy", "replay", "-S", "now-1hours", "--policies", str(tmp_path), user="root")
        refused[:] = [row for row in replay["rows"] if (row["would_be"], row["target"]) == ("reject", "failure")]
        return any(row["right"] >= JOBS for row in refused)

    wait_until(told, WAIT_S, "the hub to know the jobs that failed again", lambda: repr(refused), poll_s=1.0)
    assert [row["wrong"] for row in refused] == [0]


@pytest.mark.core
def test_verdicts_are_judged_by_how_their_jobs_ended(site: Site, user: str, name: str) -> None:
    """Of a policy's warnings all but one came true: each row has its own outcome, and the score is that of the rows."""
    policy = f"tell-{secrets.token_hex(4)}"
    policies(site, **{policy: f'[policy]\nmode = "warn"\n{FAILURE}'})
    jobs = [str(job) for job in fail_again(site, user, name)]
    mended = str(site.cluster.sbatch("true", user, job_name=name, output="/dev/null"))
    site.cluster.wait_accounted(int(mended))
    site.cluster.cancel_jobs()
    rows: list[dict[str, Any]] = []

    def joined() -> bool:
        found = verdicts(site, "--policy", policy)
        rows[:] = [row for row in found if set(row["job_ids"]) & {*jobs, mended}]
        return len(rows) == JOBS + 1 and all(row["hit"] is not None for row in rows)

    wait_until(joined, WAIT_S, f"the outcomes of {jobs} and {mended}", lambda: repr(rows)[:2000], poll_s=1.0)
    assert {row["job_ids"][0]: (row["action"], row["hit"]) for row in rows} == {
        **dict.fromkeys(jobs, ("warn", True)),
        mended: ("warn", False),
    }
    # Before the advisor knew the failures, a job or more of the same kind was submitted, and judged too.
    hits = [row["hit"] for row in verdicts(site, "--policy", policy) if row["hit"] is not None]
    score = site.json("policy", "verdicts", "--score", user="root")
    (week,) = [week for week in score["weeks"] if week["policy"] == policy]
    assert (week["judged"], week["hits"]) == (len(hits), sum(hits))
    assert week["precision"] == pytest.approx(sum(hits) / len(hits), abs=1e-4)
    assert policy in site.gpuwaste("policy", "verdicts", "--score", user="root").stdout
    assert site.gpuwaste("policy", "verdicts", "--score", user=user, check=False).returncode != 0


def test_the_expected_start_is_printed_where_the_policy_says_so(site: Site, user: str, other: str, name: str) -> None:
    """Others hold every GPU for an hour: sbatch prints when such a job starts, and the verdict has the interval."""
    busy = "#!/bin/bash\nsleep 600\n"
    for node in ("gpu1", "gpu2"):
        held = site.cluster.sbatch(busy, other, nodelist=node, gres="gpu:4", time=60, output="/dev/null")
        site.cluster.wait_job(held, "RUNNING")
    policies(site, starts='[policy]\nname = "starts"\nmode = "warn"\n[expected_start]\nmin_wait_minutes = 1\n')
    # The hub compiles the simulation at the first question, and the advisor asks once a minute.
    said = wait_said(site, user, name, busy, "--gres=gpu:4", "--time=60", timeout_s=300)
    assert said.job is not None
    assert re.match(r"sbatch: (?:error: )?gpuwaste: expected start .*80 %: .* to ", said.text), said
    start = verdict_of(site, said.job)["quantiles"]["start"]
    assert start["0.1"] <= start["0.5"] <= start["0.9"]
