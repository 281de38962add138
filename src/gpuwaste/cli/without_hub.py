"""What works without a hub: the end of the line of a command whose hub, or munge on this host, does not answer."""

from collections.abc import Mapping, Sequence
from typing import Final

_ANALYZE: Final = "gpuwaste analyze --sacct FILE, or --swf FILE"
_FROM_FILES: Final = "the same command with --sacct FILE or --swf FILE"
_WITHOUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("report", "job", "now", "web", "analyze"), _ANALYZE),
    **dict.fromkeys(("simulate", "model train", "model evaluate", "policy replay"), _FROM_FILES),
    "predict": "gpuwaste predict --model DIR SCRIPT",
    "plan": "gpuwaste plan --model DIR SCRIPT",
}


def without_hub(error: Exception, words: Sequence[str]) -> str:
    """Return what a user can run instead of the command in `words`.

    Empty where the hub answered, and for a command that nothing replaces.
    """
    from gpuwaste.net.http import UnreachedError
    from gpuwaste.net.munge_credentials import MungeUnreachedError

    if not isinstance(error, UnreachedError | MungeUnreachedError):
        return ""
    found = _WITHOUT.get(" ".join(words[:2])) or _WITHOUT.get(" ".join(words[:1]))
    return f"; without a hub: {found}" if found else ""
