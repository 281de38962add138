"""Lines of HLO text: the short way of reading one gives what the long way gives."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.readers.hlo_text import Instruction, read_module

_NAME: Final = st.from_regex(r"[a-z][a-zA-Z0-9_.\-]{0,9}", fullmatch=True)
_LINE: Final = st.tuples(
    st.booleans(),
    _NAME,
    st.sampled_from(["f32[]", "f32[8,80]{1,0}", "bf16[2,3]", "s32[4]{0:T(128)}", "pred[]"]),
    st.sampled_from(["add", "dot", "custom-call", "while", "copy-start"]),
    st.lists(_NAME, max_size=4),
    st.sampled_from(["", ", dimensions={0,1}", ", calls=%f.1", ", sharding={replicated}"]),
    st.sampled_from(
        ["", ', metadata={op_name="a(b)/c" source_line=3}', ', metadata={op_name="x"}, backend_config={"n":"4"}']
    ),
    st.sampled_from(["", "%"]),
)  # fmt: skip
"""ROOT, name, type, operation, operands, attributes, what is mostly left out, the sign before names."""


@given(st.lists(_LINE, min_size=1, max_size=6))
def test_operands_with_and_without_types_are_the_same(
    lines: list[tuple[bool, str, str, str, list[str], str, str, str]],
) -> None:
    """A line whose operands have types is read part by part, one without types at once: the same instructions."""
    short, long = [], []
    for root, name, kind, opcode, operands, attributes, dropped, sign in lines:
        head, tail = f"  {'ROOT ' if root else ''}{sign}{name} = {kind} {opcode}(", f"){attributes}{dropped}"
        short.append(head + ", ".join(sign + each for each in operands) + tail)
        long.append(head + ", ".join(f"f32[2]{{0}} {sign}{each}" for each in operands) + tail)
    assert _read(short) == _read(long)


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("  x = f32[] constant(1e-05)", ["1e-05"]),
        ("  x = s32[] constant(-7)", ["-7"]),
        ("  x = s32[40]{0} constant({1, 2, 3, 4, 5, 6, 7, 8, 9})", ["{1, 2, 3, 4, 5, 6, 7, 8,"]),
        ("  x = s32[9]{0} constant(1, 2, 3, 4, 5, 6, 7, 8, 9)", ["1, 2, 3, 4, 5, 6, 7, 8,"]),
        ("  x = f32[2] parameter(0), sharding={replicated}", ["0"]),
        ("  x = f32[2] iota(), iota_dimension=0", []),
        ("  x = f32[2] add(a,b)", ["a", "b"]),
        ("  x = f32[2] add( a , %b )", ["a", "b"]),
        ("  x = f32[2] add(a, , b)", ["a", "b"]),
        ("  x = f32[2] /*index=1*/add(a, /*index=2*/b)", ["a", "b"]),
    ],
)
def test_odd_operands(line: str, operands: list[str]) -> None:
    """Constants are cut, blanks and comments are left out, whichever way the line is read."""
    assert _read([line])[0].operands == operands


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  x = f32[2] add(a, b", "parenthesis without its end"),
        ("  x = f32[2]", "line ends inside of a type"),
        ("  x = f32[2] (a)", "no operation after the type"),
        ("  x = f32[-2] add(a)", "expected a number"),
        ("x = f32[2] add(a)", "expected name = type operation"),
        ("  x = f32[2] add(" + ", ".join(["a"] * 20_001) + ")", "more than 20000 operands"),
    ],
)
def test_a_bad_line_is_named(line: str, words: str) -> None:
    """The error has the line's number and what is wrong there."""
    with pytest.raises(ParseError, match=f"^line 4: .*{words}"):
        _read([line])


def _read(lines: list[str]) -> list[Instruction]:
    return read_module(["HloModule m", "", "ENTRY e {", *lines, "}"]).computations["e"].instructions
