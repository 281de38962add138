"""GRES lists give positions, never more or fewer than are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.gpu_positions import GresOnNode, job_gres_on_node, parse_gres, parse_positions


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("gpu:a100:2(IDX:0-1)", GresOnNode((0, 1), 2, ("a100",))),
        ("gpu:2(IDX:0,3)", GresOnNode((0, 3), 2)),
        ("gpu(IDX:1-2)", GresOnNode((1, 2), 2)),
        ("gpu:2080ti:1(IDX:4)", GresOnNode((4,), 1, ("2080ti",))),
        ("gpu:a100:1(IDX:0),gpu:v100:2(IDX:4-5)", GresOnNode((0, 4, 5), 3, ("a100", "v100"))),
        ("gpu:1(IDX:)", GresOnNode((), 1)),
        ("gpu:1(IDX:N/A)", GresOnNode((), 1)),
        ("gpu:4(CNT:4)", GresOnNode((), 4)),
        ("gpu:a100:1(IDX:2),shard:a100:4", GresOnNode((2,), 1, ("a100",), 4)),
        ("shard:3,mps:1K,nic:2(IDX:0-1)", GresOnNode(shards=3)),
        ("shard:2(2/4,0/4,0/4,0/4)", GresOnNode((0,), shards=2)),
        ("shard:a100:5(0/4,4/4,1/4,-/4)", GresOnNode((1, 2), shards=5)),
        ("shard:2(2/4,0)", GresOnNode(shards=2)),
        ("gpu:a100_3g.20gb:1(IDX:7)", GresOnNode((7,), 1, ("a100_3g.20gb",))),
        ("", GresOnNode()),
        ("(null)", GresOnNode()),
    ],
)
def test_reads_what_a_job_holds_on_a_node(text: str, held: GresOnNode) -> None:
    """Positions, count, types and shards, in every form that releases print."""
    assert job_gres_on_node(text) == held


def test_reads_what_is_used_on_a_node() -> None:
    """GresUsed tells the positions in use, and how many shards, whatever stands behind their number."""
    gpu, shard = parse_gres("gpu:a100:1(IDX:0),shard:8(-/5,5/5,3/5,0/5)")
    assert gpu.positions == (0,)
    assert (shard.name, shard.count, shard.positions) == ("shard", 8, (1, 2))


def test_reads_what_a_node_has() -> None:
    """Gres= with sockets and several types."""
    assert [(e.name, e.type, e.count) for e in parse_gres("gpu:a100:4(S:0-1),gpu:2,craynetwork:4")] == [
        ("gpu", "a100", 4),
        ("gpu", "", 2),
        ("craynetwork", "", 4),
    ]


@pytest.mark.parametrize(
    "text", ["gpu:1(IDX:0-", "gpu:1(IDX:a)", "gpu:1(IDX:3-1)", "gpu:1(IDX:0-99999)", "1gpu", "gpu:1)("]
)
def test_refuses_other_text(text: str) -> None:
    """A list that is cut off or out of range is a ParseError, never a shorter list."""
    with pytest.raises(ParseError):
        parse_gres(text)


@given(st.text(alphabet="gpusha:0123-,()IDX/ N", max_size=50))
def test_any_text_is_entries_or_a_parse_error(text: str) -> None:
    """Nothing else comes out."""
    try:
        parse_gres(text)
        parse_positions(text)
    except ParseError:
        pass


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("gpu:a100", 1),
        ("gpu", 1),
        ("gpu:1g.10gb", 1),
        ("gpu:3090", 3090),
        ("gpu:1080ti:4(S:0)", 4),
        ("gpu(IDX:0-1)", 2),
    ],
)
def test_an_entry_without_a_count_is_one(text: str, number: int) -> None:
    """Slurm takes gpu:TYPE of a node for one GPU; where positions are printed they are counted."""
    (entry,) = parse_gres(text)
    assert entry.number == number
