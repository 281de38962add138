"""Former names of options: each keeps working, with one line on stderr that says the new name."""

from collections.abc import Container, Mapping, Sequence
from typing import Final

RENAMED: Final[Mapping[str, str]] = {
    "--account": "--accounts",
    "--cluster": "--clusters",
    "--end": "--endtime",
    "--fail-over": "--fail-above",
    "--into": "--models-dir",
    "--job": "--jobs",
    "--jobs": "--threads",
    "--since": "--starttime",
    "--slurm": "--as-job",
    "--start": "--starttime",
}
SWITCHES: Final[Mapping[str, str]] = {"--cluster": "--allusers"}
"""The new name of an option that stands without a value."""


def current_names(words: Sequence[str], known: Container[str]) -> tuple[list[str], list[str]]:
    """Return the words with current names, and a phrase for each that was replaced.

    `known` holds the options of the command: what it has itself under a former name stays as it is. What follows `--`
    is not the command's.
    """
    end = words.index("--") if "--" in words else len(words)
    found, phrases = [], []
    for place, word in enumerate(words[:end]):
        name, _, value = word.partition("=")
        follows = words[place + 1] if place + 1 < end else "-"
        switch = SWITCHES.get(name) if word == name and follows.startswith("-") else None
        new = switch if switch in known else RENAMED.get(name)
        if new is None or new not in known or name in known:
            found.append(word)
            continue
        found.append(new if word == name else f"{new}={value}")
        phrases.append(f"{name} is now {new}")
    return [*found, *words[end:]], list(dict.fromkeys(phrases))
