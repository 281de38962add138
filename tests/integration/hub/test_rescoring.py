"""Running jobs predicted again: once at each moment, told as events, by mail and on the job's page, off by default."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.bundles import promote
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.act.notify.notice_store import NoticeStore, add_notices
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.act.rescoring_part import RescoringPart
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.rescore_store import Rescore, RescoreStore
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.errors import ConfigError, StoreError
from gpuwaste.core.units import say_percent
from gpuwaste.hub.retention import TableRetention
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.kinds.job import JobRescored
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Action, Verdict
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.mail_server import MailServer, running_mail_server
from gpuwaste.testing.webhook_receiver import webhook_receiver

ALICE, BOB, OPER = 1001, 1002, 1004
LIMIT_S = 2 * 3600
HOOK = '[webhook]\nurl = "{url}"\nnetworks = ["127.0.0.0/8"]\n'
WANTED = {"rescore": True}


def past(job: int, hours: float = 3, limit_h: float = 4, user: str = "alice", **more: Any) -> JobRecord:
    """Return a run that ended before now."""
    start = HOUR - (30 - job) * 86400 // 10
    own = {"start": start, "submit": start - 5, "end": start + int(hours * 3600), "elapsed_s": int(hours * 3600)}
    return record(job, user, **{"name": "train", "time_limit_s": int(limit_h * 3600), **own, **more})


def running(job: int, user: str = "alice", **more: Any) -> JobRecord:
    """Return a run that started at HOUR and has a limit of two hours."""
    own = {"end": None, "elapsed_s": None, "state": "RUNNING", "exit_code": None, "time_limit_s": LIMIT_S}
    return record(job, user, **{"name": "train", **own, **more})


def later(rig: Rig, seconds: float) -> None:
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += int(seconds)


@contextlib.contextmanager
def hub(directory: Path, mail: MailServer | None = None, keys: Any = WANTED, **notify: Any) -> Iterator[Rig]:
    """Run a hub at HOUR + 30 s: six runs of alice's took three hours each, and one with a limit of two has started."""
    own: dict[str, Any] = {}
    if mail is not None:
        own = {
            "smtp_host": "127.0.0.1", "smtp_port": mail.port, "sender": "hpc@example.org", "dry_run": False,
            "address": "{user}@example.org", "limit_mail": True, "zone": "UTC",
        }  # fmt: skip
    notice = NotifyConfig(**{**own, **notify})
    outlets = directory / "outlets.d"
    outlets.mkdir(exist_ok=True)
    with webhook_receiver() as receiver:
        (outlets / "hook.toml").write_text(HOOK.format(url=receiver.url))
        clock = ShiftedClock(HOUR + 30)
        with running_hub(directory, clock=clock, notify=notice, hub_keys={"outlets_dir": str(outlets), **keys}) as rig:
            rig.hub.get(ClusterFacts).refresh()
            upsert_jobs(rig.store, [*(past(n) for n in range(1, 7)), running(7)])
            rig.hub.get(Predictions).step()
            yield rig


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with running_mail_server() as server:
        yield server


def rescore(rig: Rig) -> None:
    """Do what the hub's threads do."""
    rig.hub.get(Predictions).step()
    rig.hub.get(RescoringPart).rescorer.step()
    notifier = rig.hub.get(NotifyParts).notifier
    if notifier is not None:
        notifier.step()


def document(rig: Rig, job: int = 7, uid: int = ALICE) -> Any:
    answer = rig.get(uid, f"/v1/jobs/{job}")
    assert answer.status == 200, answer.body
    return answer.json


def moments(rig: Rig, job: int = 7, uid: int = OPER) -> list[tuple[str, int]]:
    """Return the moments of a job that are kept, and how long after its start."""
    return [(one["moment"], one["at"] - HOUR) for one in document(rig, job, uid)["said_again"]]


def events(rig: Rig) -> list[tuple[str, str]]:
    answer = rig.get(OPER, "/v1/events?kinds=job.rescored,job.limit_near")
    assert answer.status == 200, answer.body
    return [(event["type"], event["subject"]) for event in answer.json["events"]]


def test_each_moment_is_said_once(tmp_path: Path) -> None:
    """At its start, ten minutes later and forty minutes before its limit: once each, however often the hub looks."""
    with hub(tmp_path) as rig:
        for seconds in (0, 60, 600, 60, LIMIT_S - 2400 - 720, 60):
            later(rig, seconds)
            rescore(rig)
        at = dict(moments(rig))
        assert list(at) == ["start", "early", "limit"]
        assert 30 <= at["start"] < 600
        assert 690 <= at["early"] < LIMIT_S - 2400
        assert LIMIT_S - 2400 <= at["limit"] < LIMIT_S
        run = f"gw/7@{HOUR}"
        assert events(rig) == [
            ("gpuwaste.job.rescored", run), ("gpuwaste.job.rescored", run), ("gpuwaste.job.limit_near", run),
        ]  # fmt: skip


def test_what_has_ended_since_the_submission_counts(tmp_path: Path) -> None:
    """Between start and ten minutes later three of alice's jobs fail: the probability of failure rises."""
    with hub(tmp_path) as rig:
        rescore(rig)
        failed = [past(n, state="FAILED", end=HOUR + 100 + n, elapsed_s=60) for n in range(11, 14)]
        upsert_jobs(rig.store, failed)
        later(rig, 600)
        rescore(rig)
        first, second = (one["p"]["failure"] for one in document(rig)["said_again"])
        assert first == 0
        assert second > 0.2


def test_a_model_scores_them_as_it_scores_a_submission(tmp_path: Path) -> None:
    """The bundle in use answers, and its hash is in the event: the same path as `gpuwaste predict`."""
    with hub(tmp_path) as rig:
        name = promote(tmp_path / "models", "m", 0.7)
        rig.hub.get(Predictions).step()
        rescore(rig)
        (said,) = document(rig)["said_again"]
        assert said["p"]["failure"] == pytest.approx(0.7)
        (event,) = rig.get(OPER, "/v1/events?kinds=job.rescored").json["events"]
        assert (event["data"]["model_hash"], event["data"]["moment"]) == (name, "start")
        answer = rig.get(ALICE, "/v1/predict?job=7").json["predictions"][0]["targets"]
        assert next(one["p"] for one in answer if one["target"] == "failure") == pytest.approx(0.7)


def test_the_owner_gets_one_mail_before_the_limit(tmp_path: Path, mail: MailServer) -> None:
    """Forty minutes before, with the job, the time and the chance; not again, and the record says so to its owner."""
    with hub(tmp_path, mail) as rig:
        rescore(rig)
        assert not mail.received
        later(rig, LIMIT_S - 2400)
        for _ in range(3):
            rescore(rig)
            later(rig, 20)
        (got,) = mail.received
        assert got.to == ("alice@example.org",)
        subject = str(got.message["Subject"])
        assert subject.startswith("Job 7 will probably reach its time limit at ")
        assert re.search(r"will probably reach its time limit in (3\d|40) minutes\.", " ".join(got.text.split()))
        (said,) = [one for one in document(rig)["said_again"] if one["moment"] == "limit"]
        assert say_percent(said["limit_p"]) in got.text
        assert said["limit_p"] >= 0.75
        assert (said["limit_at"], said["usual"]) == (HOUR + LIMIT_S, False)
        (row,) = rig.get(ALICE, "/v1/notices").json["notices"]
        assert (row["kind"], row["status"], row["jobs"]) == ("limit", "sent", 1)
        assert not rig.get(BOB, "/v1/notices").json["notices"]


def test_a_restart_says_nothing_again(tmp_path: Path, mail: MailServer) -> None:
    """A hub that starts on the same store knows what was said, told and sent."""
    with hub(tmp_path, mail) as rig:
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        said, told = moments(rig), events(rig)
    with hub(tmp_path, mail) as rig:
        later(rig, LIMIT_S - 2400 + 10)
        rescore(rig)
        assert (moments(rig), events(rig)) == (said, told)
    assert len(mail.received) == 1


def test_the_page_and_the_report_show_it(tmp_path: Path) -> None:
    """/jobs/7 has a table of the moments with their probabilities."""
    with hub(tmp_path) as rig:
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        page = rig.page(ALICE, "/jobs/7").body.decode()
        assert "Predicted at submission and while it ran" in page
        assert "before the time limit" in page
        chance = next(one["limit_p"] for one in document(rig)["said_again"] if one["moment"] == "limit")
        assert f"{chance * 100:.0f} %" in page


def test_what_was_predicted_at_submission_stands_beside_it(tmp_path: Path) -> None:
    """Of a warning the owner sees the probability; of what shadow mode kept to itself only an operator does."""
    with hub(tmp_path) as rig:
        actions: tuple[tuple[int, Action], ...] = ((7, "warn"), (8, "pass"))
        said = [
            Verdict(
                id=f"{job:016d}", cluster="gw", at_utc_us=(HOUR - 60) * 1_000_000, op="submit", policy="p", mode="warn",
                action=action, would_be="warn", user="alice", account="proj1", p={"failure": 0.62}, lines=("warned",),
            )
            for job, action in actions
        ]  # fmt: skip
        VerdictStore(rig.store, rig.clock).add(said, "advisor")
        upsert_jobs(rig.store, [running(job, verdict_id=f"{job:016d}") for job in (7, 8)])
        rescore(rig)
        told = {(job, uid): rig.page(uid, f"/jobs/{job}").body.decode() for job in (7, 8) for uid in (ALICE, OPER)}
        assert [("62 %" in page, "<td>at submission" in page) for page in told.values()] == [
            (True, True), (True, True), (False, False), (True, True),
        ]  # fmt: skip
        assert all("at the start" in page for page in told.values())


def test_off_nothing_happens(tmp_path: Path) -> None:
    """Without [hub] rescore nothing is said, told or shown, and the thread waits for ever."""
    with hub(tmp_path, keys={}) as rig:
        later(rig, LIMIT_S - 2400)
        assert rig.hub.get(RescoringPart).rescorer.step() is None
        assert not moments(rig)
        assert not events(rig)
        assert "while it ran" not in rig.page(ALICE, "/jobs/7").body.decode()


def test_mail_needs_rescoring(tmp_path: Path, mail: MailServer) -> None:
    """[notify] limit_mail alone would send nothing: the hub does not start, and says what is missing."""
    with pytest.raises(ConfigError, match=r"limit_mail needs \[hub\] rescore"), hub(tmp_path, mail, keys={}):
        pass


def statuses(rig: Rig) -> dict[str, tuple[str, str]]:
    listed = NoticeStore(rig.store, rig.clock).listed(0, 2**40)
    return {row["user"]: (row["status"], row["why"]) for row in listed}


def test_a_user_gets_three_such_mails_a_day(tmp_path: Path, mail: MailServer) -> None:
    """Four jobs near their limits, one after the other: the fourth is in the record alone."""
    with hub(tmp_path, mail) as rig:
        upsert_jobs(rig.store, [running(8 + n, start=HOUR + 300 * (n + 1)) for n in range(3)])
        later(rig, LIMIT_S - 2400)
        for _ in range(4):
            rescore(rig)
            later(rig, 300)
        listed = NoticeStore(rig.store, rig.clock).listed(0, 2**40)
        assert sorted((row["status"], row["why"]) for row in listed) == [("not", "day_cap"), *[("sent", "")] * 3]


@pytest.mark.parametrize(
    ("notify", "expected"),
    [
        ({"limit_min_h": 3.0}, {}),
        ({"dry_run": True}, {"alice": ("dry", "")}),
        ({"address": "", "address_file": "/dev/null"}, {"alice": ("not", "no_address")}),
    ],
)
def test_who_gets_no_mail(
    tmp_path: Path, mail: MailServer, notify: dict[str, Any], expected: dict[str, tuple[str, str]]
) -> None:
    """A short limit, a dry run, no address: nothing is sent, and the record says why."""
    with hub(tmp_path, mail, **notify) as rig:
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        assert statuses(rig) == expected
        assert dict(moments(rig))["limit"]
    assert not mail.received


def test_who_opted_out_gets_none(tmp_path: Path, mail: MailServer) -> None:
    """`gpuwaste notify off` counts for these mails too."""
    with hub(tmp_path, mail) as rig:
        NoticeStore(rig.store, rig.clock).want("alice", mail=False)
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        assert statuses(rig) == {"alice": ("not", "opted_out")}
    assert not mail.received


def test_a_job_that_always_runs_to_its_limit_is_told_as_event_only(tmp_path: Path, mail: MailServer) -> None:
    """All of the user's last runs of this name reached their limits: that is how they work, no mail is sent."""
    with hub(tmp_path, mail) as rig:
        late = [past(n, 2, 2, name="chain", state="TIMEOUT") for n in range(21, 27)]
        upsert_jobs(rig.store, [*late, running(8, name="chain"), running(7, state="COMPLETED", end=HOUR + 40)])
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        (event,) = rig.get(OPER, "/v1/events?kinds=job.limit_near").json["events"]
        assert (event["data"]["jobid"], event["data"]["usual"]) == (8, True)
        assert statuses(rig) == {}
        assert [one["usual"] for one in document(rig, 8)["said_again"] if one["moment"] == "limit"] == [True]


def test_a_mail_that_comes_too_late_is_not_sent(tmp_path: Path, mail: MailServer) -> None:
    """The mail server is back after the limit: nobody is told that a limit is near which has passed."""
    mail.rcpt["alice@example.org"] = "451 later"
    with hub(tmp_path, mail) as rig:
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        del mail.rcpt["alice@example.org"]
        later(rig, 2500)
        rescore(rig)
        assert statuses(rig)["alice"][0] == "failed"
    assert not mail.received


def test_a_missing_address_file_delays_the_limit_and_nothing_else(tmp_path: Path, mail: MailServer) -> None:
    """Without addresses a near limit is looked at again; what else is due is said at once."""
    file = tmp_path / "addresses"
    with hub(tmp_path, mail, address_file=str(file)) as rig:
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        assert [moment for moment, _ in moments(rig)] == ["early"]
        file.write_text("alice alice@example.org\n")
        rescore(rig)
        assert [moment for moment, _ in moments(rig)] == ["early", "limit"]
    assert len(mail.received) == 1


def test_all_of_a_pass_is_kept_or_nothing(tmp_path: Path) -> None:
    """A notice that the store refuses takes row and event with it: they are made together the next time."""
    with hub(tmp_path) as rig:
        store, run = RescoreStore(rig.store, rig.clock), RunKey("gw", 7, HOUR)
        data = JobRescored("gw", 7, HOUR, "alice", "proj1", "start", {}, "")
        notice = {
            "kind": "limit", "user": "alice", "period_start": 1, "period_end": 1, "dry": False, "status": "due",
            "why": "", "address": "", "at_utc": 1, "jobs": 1, "gpu_s": 0.0, "wasted_s": 0.0, "exempt_s": 0.0,
            "coverage": None, "document": "",
        }  # fmt: skip
        said, told = [Rescore(run, "start", HOUR)], [tell("job.rescored", data, HOUR, run=run, unique="start")]
        with pytest.raises(StoreError):
            store.add(said, told, lambda db: add_notices(db, [notice, notice]))
        assert not moments(rig)
        assert not events(rig)
        assert not statuses(rig)
        assert store.add(said, told, lambda db: add_notices(db, [notice])) == 1
        assert store.add(said, told) == 0
        assert (len(moments(rig)), len(events(rig)), list(statuses(rig))) == (1, 1, ["alice"])


def test_what_is_not_known_yet_is_asked_again(tmp_path: Path, mail: MailServer) -> None:
    """Carol's first jobs have not ended when her limit is near: nothing is said; a minute later it is."""
    with hub(tmp_path, mail) as rig:
        upsert_jobs(rig.store, [running(9, "carol"), running(7, state="COMPLETED", end=HOUR + 40)])
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        assert "limit" not in dict(moments(rig, 9))
        own: dict[str, Any] = {"user": "carol", "submit": HOUR - 90, "start": HOUR - 80}
        upsert_jobs(rig.store, [past(n, end=HOUR + LIMIT_S - 2390, elapsed_s=3 * 3600, **own) for n in (15, 16, 17)])
        later(rig, 60)
        rescore(rig)
        assert "limit" in dict(moments(rig, 9))
    assert [got.to for got in mail.received] == [("carol@example.org",)]


def test_suspended_jobs_and_runaways_are_left_alone(tmp_path: Path) -> None:
    """A suspended job does not come nearer to its limit, and one that accounting lost passed it long ago."""
    with hub(tmp_path) as rig:
        lost = running(9, start=HOUR - 90 * 86400, submit=HOUR - 90 * 86400)
        upsert_jobs(rig.store, [running(8, state="SUSPENDED"), lost])
        later(rig, LIMIT_S - 2400)
        rescore(rig)
        assert not moments(rig, 8)
        assert not moments(rig, 9)


def test_others_do_not_see_it(tmp_path: Path) -> None:
    """What was said of alice's job is hers: bob's answer is that there is no such job."""
    with hub(tmp_path) as rig:
        rescore(rig)
        assert rig.get(BOB, "/v1/jobs/7").status == 404


def test_old_rows_are_forgotten(tmp_path: Path) -> None:
    """What was said longer ago than verdicts are kept goes."""
    with hub(tmp_path, keys={**WANTED, "verdict_days": 1}) as rig:
        rescore(rig)
        later(rig, 2 * 86400)
        assert isinstance(rig.store, HubStore)
        rig.hub.get(TableRetention).step()
        assert not document(rig)["said_again"]
