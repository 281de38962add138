"""Who a uid is: what is used while it is fresh, asked for again, and awaited when it is old."""

import queue
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.advisor.uid_lookup import FRESH_US, OLD_US, Users
from gpuwaste.testing.clocks import FakeClock

UID = 4711
WAIT_S = 30.0


class Accounts:
    """A directory whose account may pass to somebody else, and that may keep who asks waiting."""

    def __init__(self) -> None:
        self.owner = "alice"
        self.answers = threading.Event()
        self.answers.set()
        self.asked = 0

    def name(self, _uid: int) -> str:
        self.asked += 1
        assert self.answers.wait(WAIT_S)
        return self.owner

    def uid(self, name: str) -> int | None:
        return UID if name == self.owner else None

    def groups(self, _name: str) -> frozenset[str]:
        return frozenset()


class Host:
    """Users with a loop that runs where the test says so."""

    def __init__(self) -> None:
        self.accounts, self.clock = Accounts(), FakeClock(START_US // 1_000_000)
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.users = Users(self._calls.put, self.clock, self.accounts)
        self.users.worker.start()

    def answered(self) -> None:
        """Take in one answer of the directory."""
        self._calls.get(timeout=WAIT_S)()

    def name(self) -> str | None:
        """Return the name by which the uid is judged now, None where the directory is awaited."""
        user = self.users.get(UID)
        return None if user is None else user.name


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.accounts.answers.set()
    made.users.worker.stop()


def known(host: Host) -> None:
    assert host.name() is None
    host.answered()
    assert host.name() == "alice"


def test_a_uid_is_asked_for_once_while_it_is_fresh(host: Host) -> None:
    """Who submits again within the minute costs the directory nothing."""
    known(host)
    host.clock.advance(FRESH_US / 1e6)
    assert host.name() == "alice"
    assert host.accounts.asked == 1


def test_an_account_that_passed_on_is_noticed_beside_the_answers(host: Host) -> None:
    """After a minute the name is asked for again, nobody waits for that, and the next one is judged by the new name."""
    known(host)
    host.accounts.owner = "bob"
    host.clock.advance(FRESH_US / 1e6 + 1)
    assert host.name() == "alice"
    host.answered()
    assert host.name() == "bob"


def test_what_is_old_is_awaited_and_used_only_without_an_answer(host: Host) -> None:
    """After a quarter of an hour the directory is awaited; where it is silent the old name is the best there is."""
    known(host)
    host.accounts.owner = "bob"
    host.accounts.answers.clear()
    host.clock.advance(OLD_US / 1e6 + 1)
    assert host.name() is None
    last = host.users.last(UID)
    assert last is not None
    assert last.name == "alice"
    host.accounts.answers.set()
    host.answered()
    assert host.name() == "bob"


def test_the_history_brings_a_new_owner_before_his_next_submission(host: Host) -> None:
    """Who is named by an event of the history is looked up ahead, and takes the uid over."""
    known(host)
    host.accounts.owner = "bob"
    host.users.ahead("bob")
    host.answered()
    assert host.name() == "bob"
