"""Hostlists expand and fold as Slurm means them, within bounds."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.hostlist import MAX_NAMES, expand, fold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[1-2,04-06]", ["gpu1", "gpu2", "gpu04", "gpu05", "gpu06"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("a[1-2]b[5,3]c[7-8]", [f"a{a}b{b}c{c}" for b in (5, 3) for a in (1, 2) for c in (7, 8)]),
        ("gpu1, gpu2\tgpu3", ["gpu1", "gpu2", "gpu3"]),
        ("n[1-003],n[01-3]", ["n1", "n2", "n3", "n01", "n02", "n03"]),
        ("r1[01-02]-ib,login", ["r101-ib", "r102-ib", "login"]),
        ("node[8-11],node[11]", ["node8", "node9", "node10", "node11", "node11"]),
        ("/dev/nvidia[3,1]", ["/dev/nvidia3", "/dev/nvidia1"]),
        ("[1-2]", ["1", "2"]),
        ("", []),
        ("(null)", []),
        ("None assigned", []),
    ],
)
def test_expands_as_slurm_does(text: str, names: list[str]) -> None:
    """Names come in the written order, zeros and repeats kept."""
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "gpu[1-2",
        "gpu1]",
        "gpu[[1]]",
        "gpu[]",
        "gpu[a-b]",
        "gpu[2-1]",
        "gpu[1,,2]",
        "n[1 -2]",
        "n[٣]",
        "x" * 2000 + "[1-65536]",
        "[1-65536]" * 60,
        "g[1-999999999]",
        "a[0-999]b[0-999]",
        "n[1-65536],m",
        "x" * 2000000,
        "a[1]" * 100,
        "][",
    ],
)
def test_refuses_what_is_no_hostlist_and_what_would_not_end(text: str) -> None:
    """Each ends in a ParseError, at once."""
    with pytest.raises(ParseError):
        expand(text)


def test_takes_as_many_names_as_slurm() -> None:
    """The bound itself is allowed."""
    assert len(expand(f"n[1-{MAX_NAMES}]")) == MAX_NAMES


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu2", "gpu1", "gpu3", "gpu2"], "gpu[1-3]"),
        (["n08", "n09", "n10", "n9"], "n[9,08-10]"),
        (["n99", "n100", "n0101", "n102"], "n[99-100,102,0101]"),
        (["login", "gpu1"], "gpu1,login"),
        (["gpu1-ib", "gpu10-ib", "gpu2-ib"], "gpu1-ib,gpu2-ib,gpu10-ib"),
        (["r10n1", "r2n1", "r02n1", "r2n2", "r2n"], "r02n1,r2n,r2n[1-2],r10n1"),
        (["n" + "9" * 5000], "n" + "9" * 5000),
        ([], ""),
    ],
)
def test_folds_to_ranges(names: list[str], text: str) -> None:
    """Distinct names in scontrol's order; only a number at the end is folded, since 22.05 reads no other."""
    assert fold(names) == text


@given(st.lists(st.from_regex(r"[a-z]{1,3}[0-9]{0,4}(-[a-z])?", fullmatch=True), max_size=30))
def test_folding_loses_no_name(names: list[str]) -> None:
    """What was folded expands to the same set."""
    assert set(expand(fold(names))) == set(names)


@given(st.text(alphabet="gpu01-9[],() \n", max_size=60))
def test_any_text_is_names_or_a_parse_error(text: str) -> None:
    """Nothing else comes out, whatever goes in."""
    with contextlib.suppress(ParseError):
        assert len(expand(text)) <= MAX_NAMES
