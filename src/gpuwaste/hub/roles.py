"""Who may read what: own jobs; coordinators their accounts'; staff by Unix group, operators and administrators all."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final, Self

from gpuwaste.act.notify.account_sponsors import AccountCoordinators
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.parts import Parts, Reloads
from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.site.associations import coordinated

REFRESH_S: Final = 300.0
RETRY_S: Final = 15.0
_ALL: Final = frozenset({"operator", "administrator", "admin"})
_STALE: Final = log_event.warning(
    "roles-stale: cannot refresh roles, the old ones are used: {error}",
    "`sacctmgr` did not answer: check slurmdbd. Operators and coordinators are those of the last answer.",
)


class Roles(AccountCoordinators):
    """sacctmgr's answers, kept for minutes, longer while Slurm is down; without an answer there is no right."""

    def __init__(
        self,
        slurm: SlurmClient,
        clock: Clock,
        staff_groups: Collection[str] = (),
        groups_of: Callable[[str], frozenset[str]] | None = None,
    ) -> None:
        self._slurm = slurm
        self._clock = clock
        self._staff = frozenset(staff_groups)
        self._groups_of = groups_of or unix_groups
        self._lock = threading.Lock()
        self._levels: Mapping[str, str] = {}
        self._coordinators: Mapping[ClusterAccount, frozenset[str]] = {}
        self._next_us = 0
        self._asked = False

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        return cls(ports.slurm, ports.clock, parts.get(Config).hub.staff_groups, ports.groups_of)

    @property
    def reloads(self) -> Reloads:
        """Who is staff."""
        return {("hub.staff_groups",): lambda c: self.set_staff(c.hub.staff_groups)}

    def scope(self, user: str) -> Scope:
        """Return what the user may read now; queries Slurm where the answers are too old."""
        self._renew()
        operator = self._levels.get(user, "").lower() in _ALL
        everything = operator or bool(self._staff and self._staff & self._groups_of(user))
        accounts = frozenset(account for account, users in self._coordinators.items() if user in users)
        return Scope(user, everything, accounts, operator=operator)

    def coordinators(self, cluster: str, account: str) -> frozenset[str]:
        """Return who coordinates an account of a cluster now; queries Slurm where the answers are too old."""
        self._renew()
        return self._coordinators.get(ClusterAccount(cluster, account), frozenset())

    def _renew(self) -> None:
        if not self._asked or self._clock.mono_us() >= self._next_us:
            self.refresh()

    def set_staff(self, groups: Collection[str]) -> None:
        """Let the members of these groups read everything from now on; for any thread."""
        self._staff = frozenset(groups)

    def refresh(self) -> None:
        """Query Slurm, one thread at a time; others use the old answers meanwhile, except the very first time."""
        if not self._lock.acquire(blocking=not self._asked):
            return
        try:
            if self._asked and self._clock.mono_us() < self._next_us:
                return
            wait_s = REFRESH_S if self._ask() else RETRY_S
            self._next_us = self._clock.mono_us() + int(wait_s * 1e6)
            self._asked = True
        finally:
            self._lock.release()

    def _ask(self) -> bool:
        try:
            levels = self._slurm.admin_levels()
            coordinators = {name: users for name, users in self._slurm.coordinators().items() if users}
            places = self._slurm.account_places(coordinators) if coordinators else ()
        except (SlurmError, ParseError) as error:
            _STALE.log(error=error)
            return False
        self._levels, self._coordinators = levels, coordinated(coordinators, places)
        return True
