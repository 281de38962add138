"""The policies that a daemon has in use: read again where the files change; bad files leave those before in place."""

from pathlib import Path
from typing import Final

from gpuwaste.advice.policy.loading import load_files, load_policies
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError

_NOT_READ: Final = log_event.warning(
    "policies-not-read: cannot read policies, the loaded ones stay in use: {error}",
    "`gpuwaste policy check`, then fix the file.",
)


class PoliciesInUse:
    """One directory's policies; `error` says why what lies there is not in use, "" for nothing."""

    def __init__(self, directory: Path | None = None) -> None:
        """Read them; where they are bad at the start, or no directory is named, the built-in one is in use: shadow."""
        self.policies = load_files(())
        self.error = ""
        self._directory = directory
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Read them again if a file has changed; returns whether others are in use now."""
        if self._directory is None or (seen := self._files(self._directory)) == self._seen:
            return False
        self._seen = seen
        try:
            found = load_policies(self._directory)
        except ConfigError as error:
            if str(error) != self.error:
                _NOT_READ.log(error=error)
            self.error = str(error)
            return False
        self.error = ""
        changed = found.hash != self.policies.hash
        self.policies = found
        return changed

    @staticmethod
    def _files(directory: Path) -> tuple[tuple[str, int, int], ...]:
        try:
            status = [(path.name, path.stat()) for path in sorted(directory.glob("*.toml"))]
        except OSError:
            return ()
        return tuple((name, found.st_mtime_ns, found.st_size) for name, found in status)
