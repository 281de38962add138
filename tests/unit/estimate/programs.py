"""Programs for the tests of the estimator: small enough that their FLOPs, bytes and memory are computed by hand."""

from functools import partial
from pathlib import Path
from typing import Final

from gpuwaste.estimate import reading
from gpuwaste.estimate.program import Program

read_program = partial(reading.read_program, native=None)  # a test here starts no process

PRODUCT: Final = """HloModule product

ENTRY main {
  a = f32[64,128]{1,0} parameter(0)
  b = f32[128,32]{1,0} parameter(1)
  ROOT c = f32[64,32]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

LOOP: Final = """HloModule loop

cond {
  p = (s32[], f32[64,64]) parameter(0)
  n = s32[] constant(LIMIT)
  i = s32[] get-tuple-element(p), index=0
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (s32[], f32[64,64]) tuple(next, y)
}

ENTRY main {
  start = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[64,64]) tuple(zero, start)
  w = (s32[], f32[64,64]) while(init), condition=cond, body=body
  ROOT r = f32[64,64] get-tuple-element(w), index=1
}
"""


def read_text(tmp_path: Path, text: str, name: str = "program.hlo") -> Program:
    """Read a program from a file with this text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_program(path)
