"""Hostlists expand as Slurm means them, within bounds."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import MAX_NAMES, compressed, expand, natural_key


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


@given(st.text(alphabet="gpu01-9[],() \n", max_size=60))
def test_any_text_is_names_or_a_parse_error(text: str) -> None:
    """Nothing else comes out, whatever goes in."""
    with contextlib.suppress(ParseError):
        assert len(expand(text)) <= MAX_NAMES


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu1", "gpu2", "gpu3"], "gpu[1-3]"),
        (["n08", "n09", "n10", "n12"], "n[08-10,12]"),
        (["n9", "n10", "n010"], "n[9-10,010]"),
        (["a", "a", "b1", "c1", "c2", "b2"], "a,a,b1,c[1-2],b2"),
        (["n3", "n2", "n2"], "n[3,2,2]"),
        ([], ""),
    ],
)
def test_names_become_a_hostlist(names: list[str], text: str) -> None:
    """Successive numbers of one width are a range; the order and repeats stay."""
    assert compressed(names) == text
    assert expand(text) == names


@settings(max_examples=examples(200))
@given(st.lists(st.text("ab-.019", min_size=1, max_size=6)))
def test_a_hostlist_of_any_names_is_read_back(names: list[str]) -> None:
    """Whatever the names, in their order."""
    assert expand(compressed(names)) == names


def test_nodes_are_sorted_by_number() -> None:
    """Numbers by their value, as slurmctld keeps its nodes."""
    names = ["n10", "n9", "a2b10", "a2b9", "n009", "a"]
    assert sorted(names, key=natural_key) == ["a", "a2b9", "a2b10", "n009", "n9", "n10"]
