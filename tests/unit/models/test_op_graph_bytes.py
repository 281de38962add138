"""A small op graph as a program, its bytes computed by hand: what torch moves, not what the graph's lists say."""

import csv
import io
from typing import Final

from gpuwaste.estimate.program import OpSum, Program, by_kind, op_sums
from gpuwaste.models.public_times.op_graphs import program_of

_COLUMNS: Final = ["Name", "OpName", "FwOps", "BwOps", "AccOps", "Prev", "Next", "InputShapes", "OutputShape"]
_ROWS: Final = (
    ("ids", "misc", "[]", "[]", "[]", "set()", "{'embedding'}", "[]", "(2, 8)"),
    ("embedding", "EMBEDDING", "[['MEM', ((2, 8), (2, 8, 64))]]", "[['MEM', ((100, 64),)], ['MEM', ((100, 64),)]]",
     "[['VECadd', [1, 6400]]]", "{'ids'}", "{'x_h_0_ln', 'add'}", "[(2, 8)]", "(2, 8, 64)"),
    ("x_h_0_ln", "VECln", "[['VECln', (16, 64)]]", "[['VECmul', (16, 64)]]", "[]", "{'embedding'}", "{'x_h_0_fc'}",
     "[(2, 8, 64)]", "(2, 8, 64)"),
    ("x_h_0_fc", "Linear", "[['Linear', (16, 64, 64)]]", "[['Linear', (16, 64, 64)], ['Linear', (64, 16, 64)]]",
     "[['VECadd', [1, 4096]], ['VECadd', [1, 64]]]", "{'x_h_0_ln'}", "{'dropout'}", "[(2, 8, 64)]", "(2, 8, 64)"),
    ("dropout", "dropout", "[['MEM', ((2, 8, 64), (2, 8, 64))]]", "[['MEM', ((2, 8, 64),)], ['MEM', ((2, 8, 64),)]]",
     "[]", "{'x_h_0_fc'}", "{'add'}", "[(2, 8, 64)]", "(2, 8, 64)"),
    ("add", "VECadd", "[['VECadd', (16, 64)]]", "[['MEM', ((16, 64),)], ['MEM', ((16, 64),)]]", "[]",
     "{'dropout', 'embedding'}", "{'lm_head'}", "[(2, 8, 64), (2, 8, 64)]", "(2, 8, 64)"),
    ("lm_head", "Linear", "[['Linear', (16, 64, 100)]]", "[['Linear', (16, 100, 64)], ['Linear', (100, 16, 64)]]",
     "[]", "{'add'}", "{'output'}", "[(2, 8, 64)]", "(2, 8, 100)"),
    ("output", "output", "[]", "[]", "[]", "{'lm_head'}", "set()", "[(2, 8, 100)]", "(2, 8, 100)"),
)  # fmt: skip
_ARRAY: Final = 4 * 2 * 8 * 64


def _program(case: str, *changed: tuple[str, ...]) -> Program:
    """Return the graph's program; a changed row is in place of that of its name, or of the name in front of it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    replaced = {row[0]: row for row in changed}
    writer.writerows(replaced.get(row[0], row)[-len(_COLUMNS) :] for row in _ROWS)
    return program_of(case, text.getvalue(), 3)


def test_a_training_step_of_three_layers() -> None:
    """Masks of dropout are bytes; additions pass their gradient on; a result with two users has its gradients added."""
    kinds = by_kind(op_sums(_program("gpt-train-8-2")))
    assert kinds["mm"].flops == 3 * 2 * 16 * 64 * (3 * 64 + 100)
    assert kinds["random"] == OpSum(3, 0, 3 * 2.25 * _ARRAY)
    assert kinds["ln"] == OpSum(6, 0, 3 * (2 + 3) * _ARRAY)
    assert kinds["gather"].bytes == 2 * _ARRAY + 4 * 16
    assert kinds["scatter"].bytes == _ARRAY + 4 * 100 * 64
    assert kinds["softmax"].bytes == 3 * 4 * 16 * 100
    assert kinds["reduce"].bytes == 3 * (_ARRAY + 4 * 64) + 4 * 16 * 100
    forward, dropped, forks = 3 * 3 * _ARRAY, 3 * 2.25 * _ARRAY, 3 * 3 * _ARRAY
    assert kinds["elem"].bytes == forward + dropped + forks + 3 * 4 * (3 * (4096 + 64) + 6400)


def test_a_step_of_inference_has_no_gradients() -> None:
    """Forward operations only: what trains has no part in it."""
    kinds = by_kind(op_sums(_program("gpt-inf-8-2")))
    assert kinds["mm"].flops == 2 * 16 * 64 * (3 * 64 + 100)
    assert not {"scatter", "reduce", "softmax"} & kinds.keys()


def test_a_broadcast_operand_is_read_once() -> None:
    """An addition of a mask reads the mask's own elements."""
    masked = ("add", "VECadd", "[['VECadd', (16, 64)]]", "[]", "[]", "{'dropout'}", "{'lm_head'}",
              "[(2, 8, 64), (2, 1, 64)]", "(2, 8, 64)")  # fmt: skip
    kinds = by_kind(op_sums(_program("gpt-inf-8-2", masked)))
    assert kinds["elem"].bytes == 3 * (2 * _ARRAY + _ARRAY / 8)


def test_a_contiguous_array_is_not_copied() -> None:
    """Only a transposed view is copied; OPT's logits are contiguous already."""
    row = ("dropout", "contiguous", "[['MEM', ((2, 8, 64), (2, 8, 64))]]", "[]", "[]", "{'x_h_0_fc'}", "{'add'}",
           "[(2, 8, 64)]", "(2, 8, 64)")  # fmt: skip
    assert "copy" not in by_kind(op_sums(_program("opt-inf-8-2", row)))
    transposed = (*row[:5], "{'permute_3'}", *row[6:])
    assert by_kind(op_sums(_program("opt-inf-8-2", transposed)))["copy"].bytes == 3 * 2 * _ARRAY


def test_a_maximum_has_five_operations_of_gradient() -> None:
    """OPT bounds its scores by a maximum, of which the graphs have no operation: ten arrays in the backward pass."""
    view = ("dropout", "misc", "[]", "[]", "[]", "{'x_h_0_fc'}", "{'add'}", "[(2, 8, 64)]", "(2, 8, 64)")
    without = by_kind(op_sums(_program("opt-train-8-2", view)))["elem"]
    maximum = ("max_1", *view[1:])
    summed = (*_ROWS[5][:5], "{'max_1', 'embedding'}", *_ROWS[5][6:])
    linear = (*_ROWS[3][:6], "{'max_1'}", *_ROWS[3][7:])
    found = by_kind(op_sums(_program("opt-train-8-2", linear, ("dropout", *maximum), summed)))["elem"]
    assert found.count - without.count == 3 * (1 + 5)
    assert found.bytes - without.bytes == 3 * (2 + 10) * _ARRAY
