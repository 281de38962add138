"""Up to when accounting, as the hub has read it, is complete: slurmctld's queue to slurmdbd was empty then.

A run that began and ended while slurmdbd was behind is in neither of Slurm's daemons once slurmctld has forgotten it
(MinJobAge). So the queue (sdiag) is looked at after each import, while somebody asks about nodes: what had happened
when it was empty is in the next import.
"""

import re
from collections import deque
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import HOUR_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported
from gpuwaste.slurm.clients.client import SlurmClient

_WANTED_S: Final = HOUR_S  # after a question
_KEPT: Final = 64
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_UNANSWERED: Final = log_event.warning(
    "idleness-backlog-unanswered: cannot read slurmctld's queue to slurmdbd: {error}",
    "sdiag did not answer. Until it does, the idleness of nodes is unknown.",
)


class AccountingBacklog(Part):
    """One thread looks, any may ask."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm = slurm
        self._clock = clock
        self._empty = deque[int](maxlen=_KEPT)
        self._wanted_us: int | None = None
        self.memory_s = 0
        """For how long slurmctld remembers a job that has ended, seconds; 0: not known."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        part = cls(ports.slurm, ports.clock)
        parts.get(Bus).subscribe(Imported, lambda _: part.look())
        return part

    def want(self) -> None:
        """Look after each import of the next hour."""
        self._wanted_us = self._clock.mono_us()

    def look(self) -> None:
        """Note whether the queue is empty now; an error is logged."""
        if self._wanted_us is None or self._clock.mono_us() - self._wanted_us > _WANTED_S * 1e6:
            return
        now = self._clock.utc_s()
        try:
            if not self.memory_s:
                age = _SECONDS.match(self._slurm.config().settings.get("MinJobAge", ""))
                self.memory_s = int(age[0]) if age else 0
            if self._slurm.accounting_backlog() == 0:
                self._empty.append(now)
        except (SlurmError, ParseError) as error:
            _UNANSWERED.log(error=error)

    def complete_by(self, read: int | None) -> int | None:
        """Return the last instant, UTC seconds, at which an import of `read` certainly has everything; None: none."""
        return None if read is None else max((at for at in tuple(self._empty) if at <= read), default=None)
