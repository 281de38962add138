"""SIGHUP: reload the configuration while a daemon runs, as far as that is safe.

Each daemon declares which keys it can change (docs/how-to/services.md lists them); the others are named in the log and
wait for a restart. A file that cannot be used changes nothing.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.config import Config, describe_config
from gpuwaste.core.errors import GpuwasteError

_REJECTED: Final = log_event.error(
    "configuration-not-reloaded: cannot reload the configuration, the loaded one is still used: {error}",
    "`gpuwaste config check` prints the same error: fix the file, then reload.",
)
_RELOADED: Final = log_event.info("configuration-reloaded: configuration: {changes}")
Apply = Callable[[Config], None]


class Reloader:
    """Holds the configuration in force; `reload` is for any thread, one at a time."""

    def __init__(
        self,
        config: Config,
        read: Callable[[], Config],
        sections: Sequence[str],
        apply: Mapping[tuple[str, ...], Apply],
    ) -> None:
        """`sections` are those that the daemon uses; `apply` puts the named keys ("hub.staff_groups") in force."""
        self._read = read
        self._sections: Final = frozenset(sections)
        self._apply = apply
        self._in_force = _values(config)
        self._lock = threading.Lock()

    def reload(self) -> None:
        """Read the file, put in force what can be, and log what was and was not. Raises no GpuwasteError."""
        with self._lock:
            try:
                fresh = self._read()
                done = self._use(fresh)
            except GpuwasteError as error:
                _REJECTED.log(error=error)
                return
            values = _values(fresh)
            later = sorted(
                key
                for key, value in values.items()
                if value != self._in_force[key] and key.partition(".")[0] in self._sections
            )
        words = [f"reloaded: {', '.join(done)}"] if done else []
        words += [f"needs a restart: {', '.join(later)}"] if later else []
        _RELOADED.log(changes="; ".join(words) or "nothing has changed")

    def in_thread(self, *_: object) -> None:
        """Reload in a separate thread: a signal's handler."""
        threading.Thread(target=self.reload, name="reload", daemon=True).start()

    def _use(self, fresh: Config) -> list[str]:
        """Apply each group of keys in which one has changed; return the changed ones."""
        values, done = _values(fresh), []
        for keys, apply in self._apply.items():
            changed = [key for key in keys if values[key] != self._in_force[key]]
            if changed:
                apply(fresh)
                self._in_force.update((key, values[key]) for key in changed)
                done += changed
        return sorted(done)


def _values(config: Config) -> dict[str, object]:
    return {f"{section}.{key}": getattr(getattr(config, section), key) for section, key, *_ in describe_config()}
