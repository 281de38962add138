"""TRES strings count each GPU once."""

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres_amounts import GpuCount, gpu_count, memory_b, parse_tres


@pytest.mark.parametrize(
    ("text", "total", "types"),
    [
        ("cpu=4,mem=62.50G,gres/gpu=2,gres/gpu:a100=2", 2, {"a100": 2}),
        ("cpu=4,gres/gpu:2080ti=4", 4, {"2080ti": 4}),
        ("gres/gpu=3,gres/gpu:a100=1,gres/gpu:v100=2,", 3, {"a100": 1, "v100": 2}),
        ("gres/gpu=8", 8, {}),
        ("gres/gpu=2,gres/gpu:a100=0", 2, {}),
        ("cpu=1,gres/shard=4,gres/gpumem=80G,gres/gpuutil=100", 0, {}),
        ("(null)", 0, {}),
        ("", 0, {}),
    ],
)
def test_counts_each_gpu_once(text: str, total: int, types: dict[str, int]) -> None:
    """Typed and untyped counts are one count, and a type may begin with a digit."""
    assert gpu_count(parse_tres(text)) == GpuCount(total, types)


def test_memory_is_bytes() -> None:
    """A size without a unit is MiB, as Slurm means it."""
    assert memory_b(parse_tres("mem=62.50G")) == 62.5 * 1024**3
    assert memory_b(parse_tres("mem=100")) == 100 * 1024**2
    assert memory_b({}) is None


@pytest.mark.parametrize("text", ["cpu", "=4", "gres/gpu=two", "gres/gpu=-1", "gres/gpu=99999999999999"])
def test_refuses_other_text(text: str) -> None:
    """An item without an amount, or with one that is no count, is a ParseError."""
    with pytest.raises(ParseError):
        gpu_count(parse_tres(text))
