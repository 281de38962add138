"""Name and Unix groups of a uid, looked up on a thread, since a directory service may be slow.

An unknown uid is looked up, and its waiting requests are answered on the loop's thread. Users in the history are looked
up ahead of their next submission. Entries expire, since the uid of a deleted account may be given to another user, who
must not learn about the former user's jobs.
"""

import pwd
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, Self

from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.submit_server import Server
from gpuwaste.core.clock import Clock
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Worker

MAX_KNOWN: Final = 20_000
FRESH_US: Final = 60_000_000  # older entries are looked up again, while they are still used
OLD_US: Final = 900_000_000  # older entries are used only if the directory does not answer in time
_WAITING: Final = 2000  # lookups in the queue; with more there are no lookups ahead


class HostUser(NamedTuple):
    """One user; `groups` is empty where no policy needs groups. `at_us` is when it was looked up, steady clock."""

    name: str
    groups: frozenset[str]
    at_us: int


class Directory(Protocol):
    """The source of users."""

    def name(self, uid: int) -> str:
        """Return the name of a uid, "" where it has none. May block."""
        ...

    def uid(self, name: str) -> int | None:
        """Return the uid of a name. May block."""
        ...

    def groups(self, name: str) -> frozenset[str]:
        """Return the names of a user's groups. May block."""
        ...


class SystemDirectory:
    """The host's name services."""

    def name(self, uid: int) -> str:
        """Call getpwuid."""
        try:
            return pwd.getpwuid(uid).pw_name
        except (KeyError, OverflowError):
            return ""

    def uid(self, name: str) -> int | None:
        """Call getpwnam."""
        try:
            return pwd.getpwnam(name).pw_uid
        except (KeyError, ValueError):
            return None

    def groups(self, name: str) -> frozenset[str]:
        """Call getgrouplist, and look up the name of each."""
        try:
            return unix_groups(name)
        except OSError:
            return frozenset()


class Users(Part):
    """Known users, looked up by `worker`; `get` and `ask` only on the loop's thread."""

    def __init__(
        self, call: Callable[[Callable[[], None]], None], clock: Clock, directory: Directory | None = None
    ) -> None:
        self.with_groups = False
        self._call = call
        self._clock = clock
        self._directory = directory or SystemDirectory()
        self._known: dict[int, HostUser] = {}
        self._ahead: set[str] = set()
        self._asked: set[int] = set()
        self._questions: deque[int | str] = deque()
        self.worker = Worker("users", self._step, clock, patience_s=0.0)  # a directory may hang

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(lambda work: parts.get(Server).call(work), parts.get(AdvisorPorts).clock)

    def get(self, uid: int) -> HostUser | None:
        """Return the user of a uid, None where the lookup has to be awaited: it is unknown, or too old."""
        user = self._known.get(uid)
        age_us = OLD_US + 1 if user is None else self._clock.mono_us() - user.at_us
        if age_us > FRESH_US:
            self._ask(uid)
        return None if age_us > OLD_US else user

    def last(self, uid: int) -> HostUser | None:
        """Return the last known user of a uid, however old."""
        return self._known.get(uid)

    def ahead(self, name: str) -> None:
        """Look up by name a user who may submit soon."""
        if name and name not in self._ahead and len(self._questions) < _WAITING:
            if len(self._ahead) >= MAX_KNOWN:
                self._ahead.clear()
            self._ahead.add(name)
            self._put(name)

    def forget(self) -> None:
        """Forget all users, so that they are looked up again: policies have begun to use groups."""
        self._known.clear()
        self._ahead.clear()

    def _ask(self, uid: int) -> None:
        if uid not in self._asked:
            self._asked.add(uid)
            self._put(uid)

    def _put(self, question: int | str) -> None:
        self._questions.append(question)
        self.worker.wake()

    def _step(self) -> None:
        while self._questions and not self.worker.stopping.is_set():
            question = self._questions.popleft()
            try:
                uid = self._directory.uid(question) if isinstance(question, str) else question
                if uid is not None:
                    self._look_up(uid)
            except Exception:  # noqa: BLE001 a name service may raise anything; the user stays unknown
                self._asked.clear()

    def _look_up(self, uid: int) -> None:
        name = self._directory.name(uid)
        groups = self._directory.groups(name) if name and self.with_groups else frozenset()
        self._call(lambda: self._learn(uid, HostUser(name, groups, self._clock.mono_us())))

    def _learn(self, uid: int, user: HostUser) -> None:
        while len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[uid] = user
        self._asked.discard(uid)
