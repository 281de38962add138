"""exit-codes.md, from the tree of errors and the command line's own codes."""

import re
from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.manual import EXIT_CODES
from gpuwaste.core import errors
from tools.reference.markdown import document, table

_EXIT_NOTE: Final = re.compile(r" \(exit code \d+\)")


def error_classes() -> Iterator[type[errors.GpuwasteError]]:
    """Yield every error of the core."""
    for thing in vars(errors).values():
        if isinstance(thing, type) and issubclass(thing, errors.GpuwasteError):
            yield thing


def page() -> str:
    """Return the page."""
    rows = [(str(status), meaning) for status, meaning in sorted(EXIT_CODES.items())]
    kinds = [
        (f"`{kind.__name__}`", str(kind.exit_code), _EXIT_NOTE.sub("", str(kind.__doc__))) for kind in error_classes()
    ]
    return document(
        "Exit codes",
        "Every command and every daemon ends with one of these, but `gpuwaste doctor --nagios` with monitoring\n"
        "plugins' own: 0 ok, 1 warning, 2 critical, 3 unknown.",
        table(("code", "meaning"), rows),
        "## By kind of error",
        table(("error", "code", "meaning"), kinds),
    )
