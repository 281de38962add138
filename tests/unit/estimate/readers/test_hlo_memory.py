"""Memory before compilation: arrays of zeros, fills, and results that XLA stores to not compute them again."""

from pathlib import Path

import pytest
from tests.unit.estimate.programs import read_text

from gpuwaste.estimate.program import Program

IMAGE = 4 * 64 * 64 * 32 * 4


def pooled(tmp_path: Path, activation: str, last: str) -> Program:
    """Return two convolutions with an activation between them, a maximum pooling, and its gradient."""
    return read_text(
        tmp_path,
        f"""HloModule pooled

most {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = f32[] maximum(x, y)
}}

larger {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = pred[] compare(x, y), direction=GE
}}

sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = f32[] add(x, y)
}}

ENTRY main {{
  x = f32[4,64,64,32] parameter(0)
  w = f32[3,3,32,32] parameter(1)
  g = f32[4,32,32,32] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[4,64,64,32] broadcast(zero), dimensions={{}}
  c = f32[4,64,64,32] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  r = f32[4,64,64,32] {activation}
  d = f32[4,64,64,32] convolution(r, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  k = f32[4,64,64,32] convolution(d, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  s = f32[4,64,64,32] select-and-scatter(k, g, zero), window={{size=1x2x2x1 stride=1x2x2x1}}, select=larger, scatter=sum
  {last}
}}
""",
    )


PLAIN = "ROOT e = f32[4,64,64,32] convolution(s, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
ADDED = f"t = f32[4,64,64,32] add(s, k)\n  {PLAIN.replace('(s,', '(t,')}"


@pytest.mark.parametrize(
    ("activation", "last", "early"),
    [("maximum(c, zeros)", PLAIN, True), ("tanh(c)", PLAIN, False), ("maximum(c, zeros)", ADDED, False)],
)
def test_zeros_are_made_by_the_activation_that_uses_them(
    tmp_path: Path, activation: str, last: str, early: bool
) -> None:
    """The gradient of a pooling is written into the zeros of a maximum, not into those of a sum, nor without one."""
    program = pooled(tmp_path, activation, last)
    place = [op.name for op in program.ops].index("s")
    starts = [buffer.first for buffer in program.buffers if buffer.size_b == IMAGE and buffer.last > place]
    assert (place in starts) is not early


def test_a_fill_is_made_right_before_its_first_user(tmp_path: Path) -> None:
    """Zeros at the top of the text, into which the last operation writes, do not exist during the products."""
    program = read_text(
        tmp_path,
        """HloModule fill

ENTRY main {
  zero = f32[] constant(0)
  zeros = f32[512,512] broadcast(zero), dimensions={}
  i = s32[] constant(3)
  x = f32[512,512] parameter(0)
  a = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[512,512] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  row = f32[1,512] slice(b), slice={[0:1], [0:512]}
  ROOT u = f32[512,512] dynamic-update-slice(zeros, row, i, i)
}
""",
    )
    names = [op.name for op in program.ops]
    assert names.index("zeros") == names.index("b") + 1


@pytest.mark.parametrize(("dtype", "stored"), [("bf16", True), ("f16", True), ("f32", False)])
def test_a_short_tanh_that_two_use_is_stored(tmp_path: Path, dtype: str, stored: bool) -> None:
    """XLA stores it in 16 bits, and computes it again in f32."""
    program = read_text(
        tmp_path,
        f"""HloModule tanh

ENTRY main {{
  x = {dtype}[2048,2048] parameter(0)
  t = {dtype}[2048,2048] tanh(x)
  a = {dtype}[2048,2048] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = {dtype}[2048,2048] multiply(a, t)
  c = {dtype}[2048,2048] dot(b, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT d = {dtype}[2048,2048] multiply(c, t)
}}
""",
    )
    assert ("t" in {op.name for op in program.ops}) is stored
