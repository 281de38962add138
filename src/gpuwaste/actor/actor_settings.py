"""[actor] as the actor uses it, checked once at the start, and the site programs that some actions run.

A program is run only if nobody but root can change its file or the directories above it. It gets a clean environment,
no input, and limited time; its exit code is whether the action was done.
"""

import os
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from gpuwaste.act.actions.action_kind import ActionKind, ActionSlurm, SiteProgram, actions
from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.core.act_config import ActorConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_to_others
from gpuwaste.core.typed_toml import nearest
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.clients.command import CommandError, check, last_line, run_command

_PLACE: Final = re.compile(r"\{([^{}]{0,40})\}")
_MAX_OUTPUT_B: Final = 1 << 20
_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
_EVERY_S: Final = 1.0
_NOT_RUN: Final = 126  # the shell's exit code for: not started
MOST_COMMAND_S: Final = 25.0  # leaves more than half of the hub's lease of 60 s for the hub, the disk and the last look


@dataclass(frozen=True, slots=True)
class SitePrograms:
    """The argv of each program by its name; `within_s` bounds one run."""

    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within_s: float = 600.0  # a node's health check takes minutes
    slurm_conf: str = ""

    def run(self, program: SiteProgram, values: Mapping[str, str], keep: Callable[[], None]) -> str:
        """Run a program to its end and return its last line; `keep` is called each second.

        Raises CommandError if it cannot be run, takes too long or has another exit code than 0.
        """
        argv = [_filled(word, values) for word in self.words[program.name]]
        try:
            problem = open_to_others(Path(argv[0]), 0, 0)
        except OSError as error:
            raise CommandError(f"[actor] {program.label}: {argv[0]}: {error.strerror}", code=_NOT_RUN) from error
        if problem:
            raise CommandError(
                f"[actor] {program.label} is not run: others than root could change it: {problem}", code=_NOT_RUN
            )
        environment = {"PATH": _PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        if conf := self.slurm_conf or os.environ.get("SLURM_CONF", ""):
            environment["SLURM_CONF"] = conf
        with ThreadPoolExecutor(1, "program") as pool:
            done = pool.submit(run_command, argv, environment, self.within_s, _MAX_OUTPUT_B)
            while True:
                try:
                    output = done.result(_EVERY_S)
                    break
                except StillRunning:
                    keep()
        check(argv, output)
        return last_line(output.stdout)


def checked(actor: ActorConfig, kind: ActionKind) -> tuple[str, ...]:
    """Return the argv of an action's program, () for one that needs none. Raises ConfigError."""
    program = kind.execution.act if kind.execution else None
    if not isinstance(program, SiteProgram):
        return ()
    if program.words:
        return program.words
    words: tuple[str, ...] = getattr(actor, program.key)
    where = f"[actor] {program.key}"
    if not words or not words[0]:
        raise ConfigError(f"{where} is empty: action {kind.name} needs a program")
    if not words[0].startswith("/"):
        raise ConfigError(f"{where}: {words[0]!r:.60}: expected the full path of a program")
    if _PLACE.search(words[0]):
        raise ConfigError(f"{where}: {words[0]!r:.60}: no {{name}} in the path of the program")
    for name in (found for word in words for found in _PLACE.findall(word)):
        if name not in program.places:
            raise ConfigError(f"{where}: {{{name}}} is not known{nearest(name, set(program.places))}")
    return words


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], word)


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What the actor may do; times in seconds. `command_s` is the timeout of a Slurm command."""

    kinds: tuple[str, ...] = ()
    max_per_hour: int = 20
    exempt_users: frozenset[str] = frozenset()
    exempt_accounts: frozenset[str] = frozenset()
    stop_file: Path = Path("/etc/gpuwaste/stop-actions")
    poll_s: float = 5.0  # between two requests for an action
    confirm_s: float = 60.0  # time in which Slurm must show that an action was done
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

    def exempt(self, action: ActionEntry) -> str:
        """Return why a run is never touched, "" if it may be."""
        if action.user and action.user in self.exempt_users:
            return f"user {action.user} is exempt: [actor] exempt_users"
        if action.account and action.account in self.exempt_accounts:
            return f"account {action.account} is exempt: [actor] exempt_accounts"
        return ""

    def stopped(self) -> bool:
        """Return whether the stop file exists; true if that cannot be checked."""
        try:
            self.stop_file.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True


@dataclass(frozen=True, slots=True)
class ActorPorts:
    """The actor's connections to its host and the hub, which knows it by `name`."""

    slurm: ActionSlurm
    hub: HubClient
    clock: Clock
    name: str
    stop: threading.Event
    alive: Callable[[], None]
    """Called during waits."""


def _programs(config: Config) -> SitePrograms:
    words = {name: checked(config.actor, actions()[name]) for name in config.actor.actions}
    return SitePrograms({name: said for name, said in words.items() if said}, slurm_conf=config.common.slurm_conf)
