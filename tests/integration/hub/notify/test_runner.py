"""Digests on schedule: each period once, only when all is known, never twice, whatever fails or restarts in between."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.notify.rig import DAY, HOUR, Rig, notifying

from gpuwaste.act.notify.mailer import Delivery
from gpuwaste.act.notify.notice_runner import NoticeRunner
from gpuwaste.core.scope import Scope

OPERATOR = Scope("oper", everything=True)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with notifying(tmp_path) as made:
        yield made


def waste(rig: Rig) -> None:
    """Let alice waste ten GPU-hours and bob work, and the period end."""
    rig.job(1, "alice")
    rig.job(2, "bob", busy=True)
    rig.to_period_end()


def test_who_wasted_is_told_once(rig: Rig) -> None:
    """Alice gets her digest with her numbers, bob nothing, and no further step sends another."""
    waste(rig)
    for _ in range(3):
        rig.notifier.step()
        rig.clock.advance(60)
    (mail,) = rig.mail.received
    assert mail.to == ("alice@example.org",)
    assert "10.0 GPU-hours" in str(mail.message["Subject"])
    assert "1 job with GPUs" in mail.text
    assert "gpuwaste notify off" in mail.text
    assert rig.rows() == {"alice": ("sent", ""), "bob": ("not", "little_waste")}


def test_a_restart_sends_nothing_again(rig: Rig) -> None:
    """A hub that starts again after the period was sent, or was decided on, goes on where the other was."""
    waste(rig)
    rig.job(3, "carol")
    rig.notifier.decide()
    rig.start()
    rig.notifier.step()
    rig.start()
    rig.notifier.step()
    assert sorted(to for to, _ in rig.subjects()) == ["alice@example.org"]


class Crash(BaseException):
    """Ends the hub, as kill -9 does: nothing catches it."""


class CrashingMailer:
    """Takes a mail and dies with it."""

    def send(self, *_: object) -> Delivery:
        """Die."""
        raise Crash


def test_a_crash_while_sending_is_never_made_good(rig: Rig) -> None:
    """Killed between the claim and the answer, the mail may have gone: the audit says so, and it is not sent again."""
    waste(rig)
    notifier = NoticeRunner(rig.notifier._planner, CrashingMailer(), rig.clock, rig.accounting)
    with pytest.raises(Crash):
        notifier.step()
    assert rig.rows()["alice"][0] == "sending"
    rig.start()
    rig.notifier.step()
    assert rig.mail.received == []
    assert rig.rows()["alice"][0] == "unclear"


def test_the_first_period_is_the_next_one(rig: Rig) -> None:
    """A hub on which notices were just switched on writes to nobody about the week before."""
    rig.job(1, "alice")
    rig.notifier.step()
    assert rig.mail.received == []
    assert rig.rows() == {}


@pytest.mark.parametrize("cause", ["lag", "failed", "settle", "never read"])
def test_nobody_is_told_by_half_of_the_facts(rig: Rig, cause: str) -> None:
    """While accounting fails or lags, or rows may be on their way, nothing is decided; afterwards it is."""
    rig.job(1, "alice")
    rig.to_period_end(600 if cause == "settle" else 2 * HOUR)
    rig.failed, rig.lag_s = cause == "failed", 2 * HOUR if cause == "lag" else 1e9 if cause == "never read" else 0.0
    rig.notifier.step()
    assert (rig.rows(), rig.mail.received) == ({}, [])
    rig.failed, rig.lag_s = False, 0.0
    rig.clock.advance(HOUR)
    rig.notifier.step()
    assert rig.rows()["alice"][0] == "sent"


def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    """With dry_run, the default, it is noted who would be told; switched off later, old periods stay unsent."""
    with notifying(tmp_path, dry_run=True) as rig:
        waste(rig)
        rig.notifier.step()
        assert rig.rows() == {"alice": ("dry", ""), "bob": ("not", "little_waste")}
        rig.start(dry_run=False)
        rig.notifier.step()
        assert rig.mail.received == []
        rig.job(5, "alice")
        rig.to_period_end()
        rig.notifier.step()
        assert len(rig.mail.received) == 1


def test_live_dry_and_live_again(rig: Rig) -> None:
    """A site that goes back to a dry run for a period does not send that period when it is live again."""
    rig.start(dry_run=True)
    waste(rig)
    rig.notifier.step()
    rig.start(dry_run=False)
    rig.notifier.step()
    assert rig.mail.received == []


def test_quiet_hours_hold_mail_back(rig: Rig) -> None:
    """A period that ends in the quiet hours is decided at once and sent when they are over."""
    rig.start(quiet_hours="06:00-18:00")
    waste(rig)
    rig.notifier.step()
    assert (rig.rows()["alice"][0], rig.mail.received) == ("due", [])
    rig.clock.advance(9 * HOUR)
    rig.notifier.step()
    assert len(rig.mail.received) == 1


def test_the_server_is_down_for_a_while(rig: Rig) -> None:
    """Nothing is lost while the mail server is away, and it is not asked for each user: one refusal, then a wait."""
    waste(rig)
    rig.job(3, "carol")
    rig.mail.rcpt = {}
    rig.start(smtp_port=1)
    rig.job(4, "dave")
    rig.to_period_end()
    rig.notifier.step()
    states = {user: status for user, (status, _) in rig.rows().items()}
    assert sorted(s for s in states.values() if s != "not") == ["due", "later"]
    rig.start(smtp_port=rig.mail.port)
    rig.clock.advance(HOUR)
    rig.notifier.step()
    assert sorted(to for to, _ in rig.subjects()) == ["carol@example.org", "dave@example.org"]


def test_one_bad_address_stops_nobody(rig: Rig) -> None:
    """5xx for one user is noted with the server's words, 4xx is tried again; others get theirs."""
    rig.job(1, "alice", hours=12)
    rig.job(2, "bob", hours=11)
    rig.job(3, "carol")
    rig.mail.rcpt = {"alice@example.org": "550 unknown", "bob@example.org": "450 later"}
    rig.to_period_end()
    rig.notifier.step()
    assert {u: s for u, (s, _) in rig.rows().items()} == {"alice": "failed", "bob": "later", "carol": "sent"}
    rig.mail.rcpt = {}
    rig.notifier.step()
    assert len(rig.mail.received) == 1
    rig.clock.advance(HOUR)
    rig.notifier.step()
    assert [to for to, _ in rig.subjects()] == ["carol@example.org", "bob@example.org"]


def test_what_is_not_delivered_in_its_period_is_given_up(rig: Rig) -> None:
    """A digest that waits for the server until the next period is replaced by that period's."""
    waste(rig)
    rig.mail.rcpt = {"alice@example.org": "450 later"}
    rig.notifier.step()
    rig.job(4, "alice", hours=20)
    rig.to_period_end()
    rig.mail.rcpt = {}
    rig.notifier.step()
    rig.clock.advance(DAY)
    rig.notifier.step()
    assert len(rig.mail.received) == 1
    assert "20.0 GPU-hours" in str(rig.mail.received[0].message["Subject"])
    statuses = [row["status"] for row in rig.parts.service._planner.notices.listed(0, 2**40, user="alice")]
    assert sorted(statuses) == ["failed", "sent"]


def test_an_opt_out_counts_at_once(rig: Rig) -> None:
    """Who says no gets none: not in the next period, nor one that was decided on and not sent yet; yes counts again."""
    waste(rig)
    rig.notifier.decide()
    rig.parts.service.want(Scope("alice"), b'{"mail": false}')
    rig.notifier.step()
    rig.job(3, "alice")
    rig.to_period_end()
    rig.notifier.step()
    assert rig.mail.received == []
    assert rig.rows(kind="digest")["alice"] in {("not", "opted_out"), ("failed", "")}
    rig.parts.service.want(Scope("alice"), b'{"mail": true}')
    rig.job(4, "alice")
    rig.to_period_end()
    rig.notifier.step()
    assert len(rig.mail.received) == 1


def test_the_site_s_own_list_of_the_unwilling(rig: Rig, tmp_path: Path) -> None:
    """A name in the opt-out file is never written to; while the file cannot be read nobody is."""
    file = tmp_path / "no-mail"
    rig.start(opt_out_file=str(file))
    waste(rig)
    rig.notifier.step()
    assert (rig.rows(), rig.mail.received) == ({}, [])
    file.write_text("# the director\nalice\n")
    rig.notifier.step()
    assert rig.rows()["alice"] == ("not", "opted_out")


def test_daily_digests_keep_the_cooldown(rig: Rig) -> None:
    """With a chance each day and three days' cooldown, a user who wastes daily is told every third day, of all days."""
    rig.start(every="day", cooldown_days=3.0)
    for day in range(7):
        rig.job(10 + day, "alice")
        rig.to_period_end()
        rig.notifier.step()
    assert len(rig.mail.received) == 3
    assert "3 jobs with GPUs" in rig.mail.received[-1].text


def test_the_staff_s_week(rig: Rig) -> None:
    """Staff gets the week's list once, also of those who want no mail themselves."""
    rig.start(staff=("ops@example.org",))
    rig.parts.service.want(Scope("alice"), b'{"mail": false}')
    waste(rig)
    rig.notifier.step()
    rig.notifier.step()
    (mail,) = rig.mail.received
    assert mail.to == ("ops@example.org",)
    assert "alice" in mail.text


def test_hostile_names_in_a_digest(rig: Rig) -> None:
    """A job name with line breaks, escapes and headers arrives as harmless text in one mail to one address."""
    rig.job(1, "alice", name="x\r\n\r\nBcc: eve@example.org\r\n.\r\n\x1b[2J" + "y" * 4000)
    rig.to_period_end()
    rig.notifier.step()
    (mail,) = rig.mail.received
    assert mail.to == ("alice@example.org",)
    assert mail.message["Bcc"] is None
    assert "\x1b" not in mail.text
    assert max(map(len, mail.text.splitlines())) <= 120


@pytest.mark.long
def test_replay_equals_what_was_sent(rig: Rig) -> None:
    """Over five weeks of daily chances, replay names the same users, periods and GPU-hours as the mails that went."""
    rig.start(every="day", cooldown_days=4.0)
    begin = rig.now
    for day in range(20):
        rig.job(100 + day, ("alice", "bob", "carol")[day % 3], hours=6 + day % 5, busy=day % 4 == 3)
        rig.to_period_end()
        rig.notifier.step()
    sent = {
        (row["user"], row["period_end"], row["wasted_s"], row["jobs"])
        for row in rig.parts.service._planner.notices.listed(0, 2**40)
        if row["status"] == "sent"
    }
    assert len(sent) == len(rig.mail.received) > 5
    replayed = rig.parts.service.replay(OPERATOR, begin, None)
    told = {(row.user, period.end, row.wasted_s, row.jobs) for period in replayed.periods for row in period.told}
    assert told == sent
    assert sum(user.times for user in replayed.users) == len(sent)
    json.dumps(replayed.to_json())
