"""Hostlists against scontrol of the installed Slurm, on lists drawn at random.

What differs for a reason: 22.05 refuses text after the last bracket (`gpu[1-2]-ib`), we read it;
22.05 lets a bracket stay open and reads blanks as zeros within brackets, we refuse both;
later releases give the names of several brackets with text after the last one in another order.
"""

import random
import re
import subprocess
from collections import Counter

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.cluster
CASES = 600
LONGEST = 100_000  # of one argument: the kernel takes 131,072 bytes
TAIL = re.compile(r"\][^,\s\[]+(?:[,\s]|$)")  # text after the last bracket
PREFIXES = ("n", "gpu", "gpu-", "r1n", "r2n", "r10n", "r02n", "rack.a", "0n", "", "login", "n1x")


class Scontrol:
    """`scontrol show hostnames` and its like: a program that reads slurm.conf and asks nobody."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self._env = cluster.env()
        self.ordered = cluster.release == (22, 5)

    def show(self, what: str, text: str) -> str | None:
        """Return what it prints, None where it refuses."""
        done = subprocess.run(
            ["scontrol", "show", what, text],
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(60),
        )
        return None if "nvalid host" in done.stdout + done.stderr or done.returncode else done.stdout.strip()


@pytest.fixture
def scontrol(cluster: LoopbackCluster) -> Scontrol:
    return Scontrol(cluster)


def _number(draw: random.Random) -> str:
    number = draw.choice((draw.randrange(13), draw.randrange(95, 106), draw.randrange(10_000)))
    return str(number).zfill(draw.choice((0, 0, 0, 2, 3, 5)))


def _ranges(draw: random.Random, longest: int) -> str:
    parts = []
    for _ in range(draw.choice((1, 1, 2, 4))):
        low = _number(draw)
        high = str(int(low) + draw.randrange(longest))
        parts.append(draw.choice((low, f"{low}-{high}", f"{low}-{high.zfill(draw.randrange(6))}")))
    return ",".join(parts)


def _expression(draw: random.Random) -> str:
    """Return a hostlist: plain names, several brackets in a name, repeats, once in a while a very long range."""
    if draw.random() < 0.01:
        return f"{draw.choice(PREFIXES)}[{draw.randrange(9)}-{draw.randrange(60_000, 65_000)}]"
    parts = []
    for _ in range(draw.choice((1, 2, 3, 8))):
        dimensions = draw.choice((0, 1, 1, 2, 3))
        name = draw.choice(PREFIXES) + "".join(
            f"[{_ranges(draw, 30 if dimensions == 1 else 4)}]{'x' if index + 1 < dimensions else ''}"
            for index in range(dimensions)
        )
        parts += [name or "n"] * draw.choice((1, 1, 1, 2))
    return draw.choice((",", ",", ",", " ", ", ", ",,")).join(parts)


def _names(draw: random.Random) -> list[str]:
    found = set()
    prefixes = draw.sample(PREFIXES, 3)
    for _ in range(draw.choice((1, 3, 10, 60))):
        prefix = draw.choice(prefixes)
        number = _number(draw)
        found.add(draw.choice((f"{prefix}{number}",) * 8 + (f"{prefix}{number}-ib", prefix or "n")))
    names = sorted(found)
    draw.shuffle(names)
    return names


def test_expands_as_scontrol_does(scontrol: Scontrol, draw: random.Random) -> None:
    """Hundreds of drawn lists: the same names in the same order."""
    wrong = []
    for _ in range(CASES):
        text = _expression(draw)
        theirs = scontrol.show("hostnames", text)
        if theirs is None or expand(text) != theirs.split("\n"):
            wrong.append(text)
    assert not wrong, f"{len(wrong)} of {CASES}: {wrong[:5]}"


def test_a_list_that_scontrol_wrote_is_read(scontrol: Scontrol, draw: random.Random) -> None:
    """Whatever order and repeats scontrol folds, the names come back in that order."""
    for _ in range(CASES // 4):
        names = _names(draw)
        text = scontrol.show("hostlist", ",".join(names))
        assert text is not None
        assert expand(text) == names


def test_of_a_spoilt_list_the_same_names_are_read_or_none(scontrol: Scontrol, draw: random.Random) -> None:
    """Brackets, hyphens, commas, letters, digits of other scripts at random places: what we read, scontrol reads."""
    wrong, read = [], 0
    for _ in range(CASES // 2):
        text = _spoilt(draw)
        try:
            ours = expand(text)
        except ParseError:
            continue
        theirs = scontrol.show("hostnames", text)
        read += 1
        same = theirs is not None and Counter(theirs.split("\n")) == Counter(ours)
        alike = theirs == "\n".join(ours) or (same and not scontrol.ordered and bool(TAIL.search(text)))
        if not alike and not (theirs is None and TAIL.search(text)):
            wrong.append((text, ours[:5], theirs and theirs[:60]))
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"
    assert read > CASES // 20, "hardly any list was left whole enough to compare"


def _spoilt(draw: random.Random) -> str:
    """Return a list with a character or two changed; a first hyphen would be an option of scontrol's."""
    text = _expression(draw)[:200]
    for _ in range(draw.choice((1, 1, 2))):
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice(("", "[", "]", "-", ",", "x", "0", "٣")) + text[place + draw.randrange(2) :]
    return text.strip().lstrip("-") or "n"
