"""HLO text: work and memory of programs computed by hand."""

import time
from pathlib import Path
from typing import Final

import pytest
from tests.unit.estimate.programs import LOOP, PRODUCT, read_text

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate.program import OpSum, by_kind, op_sums, peak_b


def test_a_matrix_product(tmp_path: Path) -> None:
    """64x128 by 128x32 is 2 x 64 x 128 x 32 FLOPs, reads both operands and writes the result."""
    program = read_text(tmp_path, PRODUCT)
    assert op_sums(program) == {"mm/f32": OpSum(1, 524_288, 4 * (64 * 128 + 128 * 32 + 64 * 32))}
    assert (program.parameters_b, program.outputs_b) == (49_152, 8_192)
    assert peak_b(program.buffers) == 49_152 + 8_192


def test_a_batch_of_products_is_another_kind(tmp_path: Path) -> None:
    """With batch dimensions the kind is bmm; every batch counts."""
    text = PRODUCT.replace("f32[64,128]", "bf16[8,64,128]").replace("f32[128,32]", "bf16[8,128,32]")
    text = text.replace("f32[64,32]", "bf16[8,64,32]").replace(
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
    )
    assert op_sums(read_text(tmp_path, text))["bmm/bf16"].flops == 8 * 524_288


_CONVOLUTIONS: Final = {  # filter, result, window, kind, FLOPs
    "3x3": ("3,3,16,32", "4,28,28,32", "3x3 pad=1_1x1_1}", "conv", 2 * 4 * 28 * 28 * 32 * 9 * 16),
    "1x1": ("1,1,16,32", "4,28,28,32", "1x1}", "conv1", 2 * 4 * 28 * 28 * 32 * 16),
    "depthwise": ("3,3,1,16", "4,28,28,16", "3x3}, feature_group_count=16", "dwconv", 2 * 4 * 28 * 28 * 16 * 9),
    "grouped": ("3,3,4,32", "4,28,28,32", "3x3}, feature_group_count=4", "gconv", 2 * 4 * 28 * 28 * 32 * 36),
    "dilated": ("3,3,16,32", "4,56,56,32", "3x3 lhs_dilate=2x2}", "conv", 2 * 4 * 56 * 56 * 32 * 9 * 16 / 4),
}


@pytest.mark.parametrize("name", _CONVOLUTIONS)
def test_a_convolution(tmp_path: Path, name: str) -> None:
    """Each result element is a sum over the filter and its input channels; zeros between elements do not count."""
    kernel, output, window, kind, flops = _CONVOLUTIONS[name]
    text = f"""HloModule conv

ENTRY main {{
  x = f32[4,28,28,16] parameter(0)
  w = f32[{kernel}] parameter(1)
  ROOT y = f32[{output}] convolution(x, w), window={{size={window}, dim_labels=b01f_01io->b01f
}}
"""
    assert by_kind(op_sums(read_text(tmp_path, text)))[kind].flops == flops


def test_a_loop_counts_trip_by_trip(tmp_path: Path) -> None:
    """The counter in condition and body says 12 trips; the array that is handed on has memory once."""
    program = read_text(tmp_path, LOOP.replace("LIMIT", "12"))
    assert op_sums(program)["mm/f32"].flops == 12 * 2 * 64**3
    assert program.unknown_trips == 0
    assert peak_b(program.buffers) <= 3 * 64 * 64 * 4 + 1024


def test_types_before_the_names_of_operands_are_passed_over(tmp_path: Path) -> None:
    """Dumps of XLA print them, tuples of tuples with layouts too: the program is the same."""
    text = LOOP.replace("LIMIT", "12")
    kept = read_text(tmp_path, text)
    state = "(s32[], f32[64,64]{1,0:T(8,128)})"
    for plain, printed in (
        ("get-tuple-element(p)", f"get-tuple-element({state} %p)"),
        ("get-tuple-element(w)", f"get-tuple-element({state} %w)"),
        ("while(init)", f"while({state} %init)"),
        ("tuple(zero, start)", "tuple(s32[] %zero, f32[64,64]{1,0} %start)"),
        ("dot(x, x)", "dot(f32[64,64]{1,0} %x, f32[64,64]{1,0} %x)"),
    ):
        assert plain in text
        text = text.replace(plain, printed)
    assert read_text(tmp_path, text).fingerprint == kept.fingerprint
    nested = text.replace(f"while({state} %init)", f"while((({state}), s32[]) %init)")
    assert read_text(tmp_path, nested).fingerprint == kept.fingerprint


def test_a_loop_without_a_known_length_counts_once(tmp_path: Path) -> None:
    """A counter that is compared with what is not a constant: one trip, and a note."""
    text = LOOP.replace("n = s32[] constant(LIMIT)", "n = s32[] get-tuple-element(p), index=0")
    program = read_text(tmp_path, text)
    assert op_sums(program)["mm/f32"].flops == 2 * 64**3
    assert program.unknown_trips == 1
    assert any("unknown length" in note for note in program.notes)


def test_what_xla_found_out_counts(tmp_path: Path) -> None:
    """A known_trip_count in the loop's configuration is taken."""
    text = LOOP.replace("n = s32[] constant(LIMIT)", "n = s32[] get-tuple-element(p), index=0").replace(
        "body=body", 'body=body, metadata={op_name="w"}, backend_config={"known_trip_count":{"n":"7"}}'
    )
    assert op_sums(read_text(tmp_path, text))["mm/f32"].flops == 7 * 2 * 64**3


def test_elementwise_results_are_not_stored(tmp_path: Path) -> None:
    """Two additions before a product: one stored array, one operation that reads both operands."""
    text = PRODUCT.replace(
        "  ROOT c",
        "  d = f32[64,128]{1,0} add(a, a)\n  e = f32[64,128]{1,0} multiply(d, a)\n  ROOT c",
    ).replace("dot(a, b)", "dot(e, b)")
    sums = op_sums(read_text(tmp_path, text))
    assert sums["elem/f32"] == OpSum(1, 0, 2 * 64 * 128 * 4)
    assert sums["mm/f32"].count == 1


def test_a_donated_parameter_is_reused(tmp_path: Path) -> None:
    """An update of a parameter whose memory the result may take needs no memory of its own."""
    text = """HloModule update, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main {
  w = f32[1024,1024] parameter(0)
  g = f32[1024,1024] parameter(1)
  ROOT n = f32[1024,1024] subtract(w, g)
}
"""
    assert peak_b(read_text(tmp_path, text).buffers) == 2 * 4 * 1024**2
    assert peak_b(read_text(tmp_path, text.replace(", input_output_alias={ {}: (0, {}, may-alias) }", "")).buffers) == (
        3 * 4 * 1024**2
    )


def test_a_lookup_reads_its_rows_only(tmp_path: Path) -> None:
    """A gather of 10 rows of a table of 1000 reads 10 rows, not the table."""
    text = """HloModule lookup

ENTRY main {
  t = f32[1000,64] parameter(0)
  i = s32[10,1] parameter(1)
  ROOT r = f32[10,64] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}
}
"""
    assert op_sums(read_text(tmp_path, text))["gather/f32"].bytes == 2 * 10 * 64 * 4 + 40


def test_calls_and_percent_signs(tmp_path: Path) -> None:
    """A program whose names have percent signs and operands types, with a function called twice."""
    text = """HloModule calls

%double (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  ROOT %q = f32[8,8]{1,0} dot(f32[8,8]{1,0} %p, f32[8,8]{1,0} %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main (a: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %b = f32[8,8]{1,0} call(f32[8,8]{1,0} %a), to_apply=%double
  ROOT %c = f32[8,8]{1,0} call(f32[8,8]{1,0} %b), to_apply=%double
}
"""
    assert op_sums(read_text(tmp_path, text))["mm/f32"] == OpSum(2, 2 * 1024, 2 * 3 * 256 - 2 * 256)


def test_the_fingerprint_is_that_of_the_work(tmp_path: Path) -> None:
    """Other names give the same fingerprint, another shape another one."""
    one = read_text(tmp_path, PRODUCT).fingerprint
    renamed = PRODUCT.replace("a =", "left =").replace("dot(a,", "dot(left,").replace("product", "other")
    assert read_text(tmp_path, renamed).fingerprint == one
    assert read_text(tmp_path, PRODUCT.replace("64", "65")).fingerprint != one


@pytest.mark.long
def test_a_hundred_thousand_lines_take_seconds(tmp_path: Path) -> None:
    """100,000 instructions are read within 6 s of CPU (the figure is that of bench.estimate)."""
    lines = [f"  v{n} = f32[64,64] add(v{n - 1}, v{max(0, n - 7)})" for n in range(1, 100_000)]
    text = "\n".join(["HloModule long", "", "ENTRY main {", "  v0 = f32[64,64] parameter(0)", *lines])
    text += "\n  ROOT r = f32[64,64] negate(v99999)\n}\n"
    before = time.process_time()
    program = read_text(tmp_path, text)
    assert time.process_time() - before < 6
    assert program.ops


_COMMENTED: Final = {
    "licence": "// Copyright\n//\n// RUN: hlo-opt %s\n\n" + PRODUCT,
    "block": "/* several\n   lines, // one of them odd\n*/ " + PRODUCT,
    "end of file": PRODUCT.rstrip() + "\n// the end",
    "lines": PRODUCT.replace("\n", '  // "a note\n'),
    "blocks": PRODUCT.replace("\n", "\n/* HloModule {\n * ENTRY ( */\n"),
    "between words": PRODUCT.replace("dot(a, b)", "dot(a, /* x * y, z **/ b)"),
    "after a brace": PRODUCT.replace("{\n", "{ // opens\n").replace("\n}", "\n /* closes */ }"),
    "long": "// " + "x" * 5000 + "\n" + PRODUCT,
}


@pytest.mark.parametrize("name", _COMMENTED)
def test_comments_are_skipped_wherever_they_are(tmp_path: Path, name: str) -> None:
    """XLA's lexer skips // and /* */ before, between and inside of lines: the program is the one without them."""
    assert read_text(tmp_path, _COMMENTED[name]).fingerprint == read_text(tmp_path, PRODUCT).fingerprint


def test_slashes_in_a_text_are_no_comment(tmp_path: Path) -> None:
    """A path or an address in quotes stays, and what follows it is read: here the operand whose memory is kept."""
    text = LOOP.replace("LIMIT", "12")
    odd = ', metadata={op_name="http://a/*b" source_file="c\\"//d"}, control-predecessors={}'
    lines = [f"{line}{odd}" if " multiply(" in line or " dot(" in line else line for line in text.split("\n")]
    assert lines != text.split("\n")
    assert read_text(tmp_path, "\n".join(lines)).fingerprint == read_text(tmp_path, text).fingerprint


def test_a_comment_without_an_end_is_named(tmp_path: Path) -> None:
    """The line with which it begins is in the message."""
    with pytest.raises(GpuwasteError, match=r"line \d+: comment without its end"):
        read_text(tmp_path, PRODUCT.replace("ROOT", "/* ROOT"))
