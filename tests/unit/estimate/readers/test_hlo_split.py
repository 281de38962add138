"""Matrix products that XLA divides along the contracted dimension, and the memory of their partial results."""

from pathlib import Path

import pytest
from tests.unit.estimate.programs import read_text

from gpuwaste.estimate.program import Program, op_sums, peak_b
from gpuwaste.estimate.readers.hlo_split import Product, padded_inner, parts_of

MIB = 1 << 20
PARTIAL_B = 64 * 64 * 64 * 4
"""64 partial results of 64 x 64 elements of f32."""


@pytest.mark.parametrize(
    ("rows", "columns", "inner", "bits", "parts"),
    [
        (1056, 352, 24, 16, 1), (160, 64, 64, 16, 1), (328, 1792, 1008, 16, 2), (2048, 512, 5376, 16, 2),
        (192, 768, 960, 16, 4), (24, 1056, 352, 16, 4), (24, 352, 1056, 16, 8), (288, 640, 15_680, 16, 8),
        (56, 176, 896, 16, 16), (32, 64, 5760, 16, 32), (140, 32, 4959, 32, 32), (2, 556, 110_592, 32, 64),
    ],
)  # fmt: skip
def test_parts_are_those_of_compiled_programs(rows: int, columns: int, inner: int, bits: int, parts: int) -> None:
    """XLA 0.10.2 divided these products so for an H100."""
    assert parts_of(Product(1, rows, columns, inner, bits, bits, bits)) == parts


def test_an_empty_product_is_not_divided() -> None:
    """A dimension of 0 is no reason to fail."""
    assert parts_of(Product(1, 0, 8, 8, 32, 32, 32)) == 1


def test_parts_are_padded_to_equal_aligned_lengths() -> None:
    """16 bytes of the narrowest operand in each part: 4 elements of f32, 8 of bf16."""
    assert padded_inner(Product(1, 8, 8, 1000, 32, 32, 32), 16) == 1024
    assert padded_inner(Product(1, 8, 8, 1000, 32, 16, 32), 16) == 1024
    assert padded_inner(Product(1, 8, 8, 896, 16, 16, 16), 16) == 896


def product(tmp_path: Path, after: str, dtype: str = "f32", inner: int = 8192) -> Program:
    """Return the program of a product of which XLA makes 64 parts, with lines after it."""
    return read_text(
        tmp_path,
        f"""HloModule divided

ENTRY main {{
  a = {dtype}[64,{inner}] parameter(0)
  b = {dtype}[{inner},64] parameter(1)
  c = {dtype}[64,64] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  d = {dtype}[64,64] negate(c)
{after}
}}
""",
    )


def test_the_only_user_of_partial_results_adds_them_up(tmp_path: Path) -> None:
    """Operands, 64 partial results, and the result of the kernel that reads them."""
    found = product(tmp_path, "  ROOT e = f32[64,64] exponential(d)")
    assert peak_b(found.buffers) == 2 * (2 * MIB) + PARTIAL_B + 16_384


def test_several_users_read_the_sum(tmp_path: Path) -> None:
    """Partial results end when they are added up: later only the sum is kept. FLOPs and bytes stay those of one dot."""
    after = """  e = f32[64,64] exponential(d)
  s = f32[64,64] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT f = f32[64,64] add(s, d)"""
    found = product(tmp_path, after)
    assert max(buffer.size_b for buffer in found.buffers if buffer.last > buffer.first) == 2 * MIB
    assert any(buffer.size_b == PARTIAL_B and buffer.first == buffer.last for buffer in found.buffers)
    assert op_sums(found)["mm/f32"].flops == 2 * 64 * 64 * (8192 + 64)


def test_partial_results_are_of_f32(tmp_path: Path) -> None:
    """A product of bf16 has partial results of four bytes an element."""
    found = product(tmp_path, "  ROOT e = bf16[64,64] exponential(d)", "bf16")
    assert any(buffer.size_b == PARTIAL_B for buffer in found.buffers)


def test_integers_are_not_divided(tmp_path: Path) -> None:
    """XLA leaves them as they are: only operands and result have memory."""
    found = product(tmp_path, "  ROOT e = s32[64,64] add(d, d)", "s32")
    assert peak_b(found.buffers) <= 2 * (2 * MIB) + 2 * 16_384
