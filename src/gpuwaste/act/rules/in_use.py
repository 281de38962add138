"""The rules that the hub has in use: read again where the files change; a bad file leaves the other rules in use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.act.rules.rule import Rule
from gpuwaste.act.rules.rule_file import RuleSet, load_rules
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import toml_files

_Files = tuple[tuple[str, int, int, int], ...]
_REFUSED: Final = log_event.error(
    "rule-refused: rule not used: {error}",
    "`gpuwaste rules check`, then fix the file. The other rules stay in use.",
)


class RulesInUse:
    """One directory's rules; one thread refreshes, any may read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: _Files | None = None
        self._names: frozenset[str] | None = None
        self._found = RuleSet((), ())

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules, by name."""
        return self._found.rules

    @property
    def errors(self) -> Sequence[ConfigError]:
        """What is wrong with files that are not in use."""
        return self._found.errors

    def removed(self, name: str) -> bool:
        """Tell whether a rule has no file any more; not where the directory cannot be read."""
        return self._names is not None and name not in self._names

    def refresh(self) -> None:
        """Read the files again if one has changed; a new error is logged."""
        seen = self._files()
        self._names = None if seen is None else frozenset(name.removesuffix(".toml") for name, *_ in seen)
        if seen is not None and seen == self._seen:
            return
        self._seen = seen
        before = {str(error) for error in self._found.errors}
        self._found = load_rules(self._directory)
        for error in self._found.errors:
            if str(error) not in before:
                _REFUSED.log(error=error)

    def _files(self) -> _Files | None:
        try:
            return tuple(map(_seen, toml_files(self._directory)))
        except OSError:
            return None


def _seen(path: Path) -> tuple[str, int, int, int]:
    """Return what changes with a file; ctime does where it only becomes readable. A link to nothing has a name only."""
    try:
        found = path.stat()
    except OSError:
        return path.name, 0, 0, 0
    return path.name, found.st_mtime_ns, found.st_ctime_ns, found.st_size
