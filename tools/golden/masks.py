"""What no two runs have in common, and the words that stand for it: every rule has its reason beside it."""

import re
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_RULES: Final = (
    # The port is whichever was free.
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    # A link of `gpuwaste web` is used once.
    (re.compile(r"(/enter#)[\w-]+"), r"\1LINK"),
    # `gpuwaste history` notes when it has read a file and how long that took, by the machine's clock.
    (re.compile(r'("at_utc": )1[89]\d{8}\b|("at_utc": )17[6-9]\d{7}\b'), r"\1\2NOW"),
    (re.compile(r"( runs in )[\d.]+( m?s, )"), r"\1TIME\2"),
)
_METRICS: Final = (
    # How long something took, when it was done by the machine's clock, and what the process is made of.
    re.compile(
        r"^((?:process|python)_\w+(?:\{.*\})?|\w*(?:seconds|bytes|_age|_s|_created|timestamp)\w*(?:\{.*\})?) .*$"
    ),
    # DuckDB's files grow by pages that depend on when it writes them.
    re.compile(r"^(\w*(?:size|memory|rss)\w*(?:\{.*\})?) .*$"),
)
NOT_KEPT: Final = {
    "date": "the machine's clock",
    "content-length": "follows from the body, and counts what is masked",
    "connection": "of the server's loop, no part of the answer",
}
"""Headers that are left out of an answer, and why."""


def masked(text: str, folder: Path) -> str:
    """Return a text without the folder of this run, that of the checkout and without what _RULES name."""
    found = text.replace(str(folder), "FOLDER").replace(str(_ROOT), "ROOT")
    for pattern, word in _RULES:
        found = pattern.sub(word, found)
    return found


def masked_metrics(text: str) -> str:
    """Return the text of /metrics with the values of durations, sizes and the process replaced; names and help stay."""
    return "\n".join(_metric(line) for line in text.splitlines()) + "\n"


def _metric(line: str) -> str:
    if line.startswith("#"):
        return line
    for pattern in _METRICS:
        if pattern.match(line):
            return pattern.sub(r"\1 VALUE", line)
    return line
