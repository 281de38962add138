"""The links of a registry: which bundle is in use, and which one is on trial. Each change is one rename."""

import os
import stat
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import TEMPORARY, sync_directory
from gpuwaste.core.text import PLAIN_NAME

CHAMPION: Final = "champion"
CHALLENGER: Final = "challenger"


class BundleLinks:
    """The links of one directory; whoever changes them holds the registry's lock."""

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir

    def name_of(self, which: str) -> str | None:
        """Return the name that a link says, None where there is no such link. Raises ModelError."""
        link = self._models_dir / which
        try:
            if self._models_dir.stat().st_mode & stat.S_IWOTH:
                raise ModelError(f"{self._models_dir}: writable by everybody: chmod o-w, then check its contents")
            name = os.readlink(link)  # noqa: PTH115 the text itself is checked, not where it leads
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ModelError(f"{link}: cannot read the link: {error.strerror}: promote a bundle") from error
        if not PLAIN_NAME.fullmatch(name):
            raise ModelError(f"{link}: points outside of {self._models_dir}: remove it and promote a bundle")
        return name

    def since(self, which: str) -> float | None:
        """Return when a link was made, UTC seconds, None where there is no such link."""
        try:
            return (self._models_dir / which).lstat().st_mtime
        except OSError:
            return None

    def point(self, which: str, name: str) -> None:
        """Move a link: a new one is made beside it and renamed over it. Raises OSError."""
        temporary = self._models_dir / f"{TEMPORARY}{os.getpid()}-link"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.rename(self._models_dir / which)
        sync_directory(self._models_dir)

    def remove(self, which: str) -> None:
        """Remove a link that may be there. Raises OSError."""
        (self._models_dir / which).unlink(missing_ok=True)
        sync_directory(self._models_dir)
