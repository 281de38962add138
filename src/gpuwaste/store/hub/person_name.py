"""The name of a user in texts of others: as a word, as JSON writes it too, and not as a part of another user's name."""

import json
import re
from collections.abc import Iterable
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.text import storable

ERASED: Final = "erased"
MAX_NAME: Final = 256  # characters
_LETTER: Final = "[A-Za-z0-9_]"


class PersonName:
    """The name of one user; `others` are names of users who stay."""

    def __init__(self, name: str, others: Iterable[str] = ()) -> None:
        """Raise UsageError where it is no name of a user."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise UsageError(f"user {name[:40]!r}: expected a name of 1 to {MAX_NAME} printable characters")
        if name == ERASED:
            raise UsageError(f"user {ERASED!r}: the name that erased users have in the store")
        self.name = storable(name)
        self.forms = _forms(self.name)
        """The spellings: as it is, and as it is written inside of JSON."""
        word = _word(self.forms)
        longer = [form for other in others if other != name and word.search(other) for form in _forms(storable(other))]
        self._pattern = _word(self.forms, longer)

    def is_in(self, text: str) -> bool:
        """Tell whether a text names the user."""
        return self.erased(text) != text

    def erased(self, text: str) -> str:
        """Return a text without the name."""
        return self._pattern.sub(lambda match: match[0] if match["other"] else ERASED, text)


def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1])))


def _word(forms: Iterable[str], longer: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of a word; names that contain it are found first, as the group `other`."""
    other, own = ("|".join(map(re.escape, sorted(found, key=len, reverse=True))) for found in (longer, forms))
    return re.compile(f"(?<!{_LETTER})(?:(?P<other>{other or '(?!)'})|(?:{own}))(?!{_LETTER})")
