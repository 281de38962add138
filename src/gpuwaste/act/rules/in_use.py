"""The rules that the hub has in use: read again where the files change; a bad file leaves the other rules in use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.act.rules.rule import Rule
from gpuwaste.act.rules.rule_file import RuleSet, load_rules
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import WatchedFiles

_REFUSED: Final = log_event.error(
    "rule-refused: rule not used: {error}",
    "`gpuwaste rules check`, then fix the file. The other rules stay in use.",
)


class RulesInUse:
    """One directory's rules; one thread refreshes, any may read."""

    def __init__(self, directory: Path) -> None:
        self._files = WatchedFiles(directory, lambda: load_rules(directory), RuleSet((), ()))

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules, by name."""
        return self._files.content.rules

    @property
    def errors(self) -> Sequence[ConfigError]:
        """What is wrong with files that are not in use."""
        return self._files.content.errors

    def removed(self, name: str) -> bool:
        """Tell whether a rule has no file any more; not where the directory cannot be read."""
        return not self._files.has(f"{name}.toml")

    def refresh(self) -> None:
        """Read the files again if one has changed; a new error is logged."""
        before = set(map(str, self.errors))
        self._files.refresh()
        for error in self.errors:
            if str(error) not in before:
                _REFUSED.log(error=error)
