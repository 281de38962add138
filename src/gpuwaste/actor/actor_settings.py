"""[actor] as the actor uses it: checked once, at the start."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from gpuwaste.act.actions.catalogue import actions
from gpuwaste.act.actions.slurm_port import ActionSlurm
from gpuwaste.act.rules.intent import Intent
from gpuwaste.actor.site_programs import SitePrograms, checked
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import nearest
from gpuwaste.net.hub_client import HubClient

MOST_COMMAND_S: Final = 25.0  # of the hub's lease of 60 s it leaves over half to the hub, the disk and the last look


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What the actor may do; times in seconds. `command_s` is the timeout of a Slurm command."""

    kinds: tuple[str, ...] = ()
    max_per_hour: int = 20
    exempt_users: frozenset[str] = frozenset()
    exempt_accounts: frozenset[str] = frozenset()
    stop_file: Path = Path("/etc/gpuwaste/stop-actions")
    poll_s: float = 5.0  # between two questions for an action to take
    confirm_s: float = 60.0  # in which Slurm must show that an action was done
    max_clock_s: float = 30.0  # between this host and the hub: half of its lease
    command_s: float = MOST_COMMAND_S
    programs: SitePrograms = field(default_factory=SitePrograms)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Check the section. Raises ConfigError."""
        actor = config.actor
        own = {kind.name for kind in actions().values() if kind.execution is not None}
        for name in actor.actions:
            if name not in own:
                raise ConfigError(f"[actor] actions: {name!r:.40} is no action of the actor{nearest(name, own)}")
        return cls(
            kinds=actor.actions,
            max_per_hour=actor.max_per_hour,
            exempt_users=frozenset(actor.exempt_users),
            exempt_accounts=frozenset(actor.exempt_accounts),
            stop_file=Path(actor.stop_file),
            command_s=min(config.common.slurm_timeout_s, MOST_COMMAND_S),
            programs=_programs(config),
        )

    def exempt(self, intent: Intent) -> str:
        """Return why a run is never touched, "" where it may be."""
        if intent.user and intent.user in self.exempt_users:
            return f"user {intent.user} is exempt: [actor] exempt_users"
        if intent.account and intent.account in self.exempt_accounts:
            return f"account {intent.account} is exempt: [actor] exempt_accounts"
        return ""

    def stopped(self) -> bool:
        """Return whether the stop file exists; one that cannot be looked at counts as there."""
        try:
            self.stop_file.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True


@dataclass(frozen=True, slots=True)
class ActorPorts:
    """Where the actor meets its host and the hub, which knows it by `name`."""

    slurm: ActionSlurm
    hub: HubClient
    clock: Clock
    name: str
    stop: threading.Event
    alive: Callable[[], None]
    """Called while something is waited for."""


def _programs(config: Config) -> SitePrograms:
    words = {name: checked(config.actor, actions()[name]) for name in config.actor.actions}
    return SitePrograms({name: said for name, said in words.items() if said}, slurm_conf=config.common.slurm_conf)
