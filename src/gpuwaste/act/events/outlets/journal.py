"""Outlet journal: a line of JSON for each event on the hub's stderr, which systemd keeps."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from gpuwaste.act.events.outlet import DeliveryResult, OutletDownError
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key
from gpuwaste.jobs.events.envelope import StoredEvent, encoded

PRIORITIES: Final = {"debug": 7, "info": 6, "notice": 5}


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Table [journal]."""

    priority: str = key("info", "Priority of the lines in the journal: debug, info or notice.")


SETTINGS: Final = JournalSettings


class JournalOutlet:
    """Writes lines with the priority that systemd reads (sd-daemon(3)); JSON has no line breaks."""

    def __init__(self, priority: int, out: TextIO) -> None:
        self._prefix = f"<{priority}>event "
        self._out = out

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Write the events. Raises OutletDownError if the journal takes no more."""
        try:
            self._out.write("".join(f"{self._prefix}{encoded(event, cluster).decode()}\n" for event in events))
            self._out.flush()
        except OSError as error:
            raise OutletDownError(f"stderr: {error.strerror}") from error
        return DeliveryResult()

    def close(self) -> None:
        """Do nothing: stderr belongs to the program."""


def make(settings: JournalSettings, where: str) -> JournalOutlet:
    """Return the outlet. Raises ConfigError."""
    if settings.priority not in PRIORITIES:
        raise ConfigError(f"{where} priority {settings.priority!r:.40}: expected {', '.join(PRIORITIES)}")
    return JournalOutlet(PRIORITIES[settings.priority], sys.stderr)
