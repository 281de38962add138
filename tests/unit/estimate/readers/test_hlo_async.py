"""Operations that HLO starts in one instruction and ends in another: each array counts once."""

from pathlib import Path
from typing import Final

import pytest
from tests.unit.estimate.programs import read_text

from gpuwaste.estimate.program import by_kind, op_sums, peak_b

_IN: Final = "f32[256,1024]{1,0}"
_IN_B: Final = 4 * 256 * 1024
_OUT: Final = "f32[1024,1024]{1,0}"
_OUT_B: Final = 4 * 1024 * 1024
_PAIRS: Final = {  # operation, type of its start, type of its end, kind, bytes of the result
    "all-gather": (f"({_IN}, {_OUT})", _OUT, "collective", _OUT_B),
    "all-reduce": (_IN, _IN, "collective", _IN_B),
    "collective-permute": (f"({_IN}, {_IN}, u32[], u32[])", _IN, "collective", _IN_B),
    "copy": (f"({_IN}, {_IN}, u32[])", _IN, "copy", _IN_B),
    "reduce-scatter": (f"(({_IN}), f32[64,1024]{{1,0}}, u32[])", "f32[64,1024]{1,0}", "collective", _IN_B // 4),
    "all-to-all": (f"(({_IN}), {_IN})", _IN, "collective", _IN_B),
}


def _text(name: str, start: str, end: str, *, scheduled: bool) -> str:
    return f"""HloModule pair{", is_scheduled=true" if scheduled else ""}

ENTRY main {{
  x = {_IN} parameter(0)
  s = {start} {name}-start(x), replica_groups={{}}
  d = {end} {name}-done(s)
  ROOT r = {end} negate(d)
}}
"""


@pytest.mark.parametrize("scheduled", [True, False])
@pytest.mark.parametrize("name", _PAIRS)
def test_the_input_counts_once(tmp_path: Path, name: str, scheduled: bool) -> None:
    """Reading the input and writing the result is all that moves, and both are all the memory that it takes."""
    start, end, kind, result_b = _PAIRS[name]
    program = read_text(tmp_path, _text(name, start, end, scheduled=scheduled))
    assert by_kind(op_sums(program))[kind].bytes == _IN_B + result_b
    assert by_kind(op_sums(program))["elem"].bytes == 2 * result_b
    assert program.notes == []
    assert peak_b(program.buffers) == _IN_B + result_b  # the negation takes the result's memory


def test_several_arrays_in_one_operation(tmp_path: Path) -> None:
    """A start of two arrays has tuples of both in its type; its end returns the tuple of results."""
    text = f"""HloModule two, is_scheduled=true

ENTRY main {{
  x = {_IN} parameter(0)
  y = {_IN} parameter(1)
  s = (({_IN}, {_IN}), ({_OUT}, {_OUT})) all-gather-start(x, y), dimensions={{0}}
  d = ({_OUT}, {_OUT}) all-gather-done(s)
  g = {_OUT} get-tuple-element(d), index=1
  ROOT r = {_OUT} negate(g)
}}
"""
    program = read_text(tmp_path, text)
    assert by_kind(op_sums(program))["collective"].bytes == 2 * (_IN_B + _OUT_B)
    assert peak_b(program.buffers) == 2 * (_IN_B + _OUT_B)


def test_a_fusion_that_is_started(tmp_path: Path) -> None:
    """A started fusion is the fusion: its work and its arrays, once."""
    text = f"""HloModule started, is_scheduled=true

body {{
  p = {_IN} parameter(0)
  ROOT q = {_IN} tanh(p)
}}

ENTRY main {{
  x = {_IN} parameter(0)
  s = (({_IN}), {_IN}, u32[]) fusion-start(x), kind=kLoop, calls=body
  u = (({_IN}), {_IN}, u32[]) fusion-update(s)
  ROOT d = {_IN} fusion-done(u)
}}
"""
    program = read_text(tmp_path, text)
    assert by_kind(op_sums(program))["elem"].bytes == 2 * _IN_B
    assert peak_b(program.buffers) == 2 * _IN_B


@pytest.mark.parametrize("start", [_OUT, f"({_OUT})", f"({_OUT}, ())", "()"])
def test_a_start_of_another_form_is_read(tmp_path: Path, start: str) -> None:
    """Whoever writes a start without the pair of operands and results gets an answer or one line, no traceback."""
    program = read_text(tmp_path, _text("all-gather", start, _OUT, scheduled=True))
    assert program.parameters_b == _IN_B
