"""Pages that say why there is nothing else: errors, and that nobody is signed in."""

from collections.abc import Sequence

from gpuwaste.show.environment import Frame, page


def error_page(heading: str, words: str, todo: Sequence[str], frame: Frame) -> str:
    """Return the page of an error: what happened, and what to do."""
    return page("error", frame, heading=heading, words=words, todo=todo)


def sign_in_page() -> str:
    """Return the page for a reader who is not signed in."""
    return page("sign_in", Frame())
