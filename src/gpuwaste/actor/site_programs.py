"""SitePrograms: the programs of the site that some actions run: words of [actor], values put in, no shell.

A program is run only where nobody but root can change its file or the directories above it. It gets a clean
environment, no input, and a bounded time; its exit code says whether the action was done.
"""

import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, SiteProgram
from gpuwaste.core.act_config import ActorConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_to_others
from gpuwaste.core.typed_toml import nearest
from gpuwaste.slurm.clients.command import CommandError, check, last_line, run_command

_PLACE: Final = re.compile(r"\{([^{}]{0,40})\}")
_MAX_OUTPUT_B: Final = 1 << 20
_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
_EVERY_S: Final = 1.0
_NOT_RUN: Final = 126  # as a shell says it: nothing was begun


@dataclass(frozen=True, slots=True)
class SitePrograms:
    """The words of each program by its name; `within_s` bounds one run."""

    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within_s: float = 600.0  # a node's health check takes minutes
    slurm_conf: str = ""

    def run(self, program: SiteProgram, values: Mapping[str, str], keep: Callable[[], None]) -> str:
        """Run a program to its end and return its last line; `keep` is called each second.

        Raises CommandError where it cannot be run, takes too long or ends with another exit code than 0.
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
    """Return the words of an action's program, () for one that needs none. Raises ConfigError."""
    program = kind.execution.act if kind.execution else None
    if not isinstance(program, SiteProgram):
        return ()
    if program.words:
        return program.words
    words: tuple[str, ...] = getattr(actor, program.key)
    where = f"[actor] {program.key}"
    if not words or not words[0]:
        raise ConfigError(f"{where} is empty: action {kind.name} needs the program that does it")
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
