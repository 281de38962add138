"""Every reader of a list of GPUs reads it alike: sbatch's options, a plugin's job, ReqGRES, submit lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.ledger.builders import job

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.ledger.finding import gpu_request
from gpuwaste.slurm.accounting.requested import request_tres
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, parse_tres
from gpuwaste.slurm.submit.gpu_items import MOST, count_of, gpu_item, gpu_items, typed_count
from gpuwaste.slurm.submit.job_desc import read_job_desc
from gpuwaste.slurm.submit.sbatch import read_submission

# A list as in --gres: GPUs and their types as Slurm counts them.
LISTS = [
    ("gpu", 1, ""),
    ("gpu:4", 4, ""),
    ("gpu:a100", 1, "a100"),
    ("gpu:a100:4", 4, "a100"),
    ("gpu:1g.10gb:1", 1, "1g.10gb"),
    ("gpu:1g.10gb", 1, "1g.10gb"),
    ("gpu:1g.10gb+me:2", 2, "1g.10gb+me"),
    ("gpu:1080ti:4", 4, "1080ti"),
    ("gpu:3090:2", 2, "3090"),
    ("gpu:3090", 3090, ""),  # a number is a count
    ("gpu:2080ti:2,gpu:a100:1", 3, "2080ti,a100"),
    ("gpu:1g.5gb:1,gpu:2g.10gb:2,gpu:7:1", 4, "1g.5gb,2g.10gb,7"),
    ("nic:2,gpu:4090:1,license:1", 1, "4090"),
    ("gpumem:80,gpu:h100:2", 2, "h100"),
    ("gpu:nvidia_a100_1g.5gb:2", 2, "nvidia_a100_1g.5gb"),
    ("gpu:_x-y.z:2", 2, "_x-y.z"),
    ("gpu:1k", 1024, ""),
    ("gpu:1KiB", 1024, ""),
    ("gpu:t4:1kb", 1000, "t4"),
    ("gpu:a100=2", 2, "a100"),  # the forms with = from Slurm 23.02 on
    ("gpu:3090=2", 2, "3090"),
    ("gpu=2", 2, ""),
    ("gpu:0", 0, ""),
    ("gpu:1080ti:0", 0, ""),
    ("nic:2", 0, ""),
    ("gres:gpu:1g.10gb:1", 1, "1g.10gb"),
]
REFUSED = ["gpu:", "gpu:a100:", "gpu:a100:x", "gpu==2", "gpu=a100", "gpu:a=b", "gpu(S:0):1"]


def _by_plugin(member: str, text: str) -> tuple[int, str]:
    desc = read_job_desc({"user_id": 1, "min_nodes": 1, "min_cpus": 1, member: text})
    return desc.asked.gpus, desc.asked.gpu_type


@pytest.mark.parametrize(("text", "gpus", "types"), LISTS, ids=[text for text, *_ in LISTS])
def test_a_list_is_the_same_gpus_for_every_reader(text: str, gpus: int, types: str) -> None:
    """`gpuwaste predict`, a submit plugin of 22.05 and of later releases and an old file see the same GPUs."""
    (request,) = read_submission(f"#!/bin/sh\n#SBATCH --gres={text}\n").requests
    assert (request.gpus, request.gpu_type) == (gpus, types)
    bare = text.removeprefix("gres:")
    for prefix in ("gres:", "gres/"):
        assert _by_plugin("tres_per_node", prefix + bare.replace(",", f",{prefix}")) == (gpus, types)
    held = gpu_count(parse_tres(request_tres({"ReqGRES": text})))
    assert (held.total, held.type) == (gpus, types)


@pytest.mark.parametrize("option", ["--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket"])
@pytest.mark.parametrize("kind", ["1g.10gb", "1080ti", "3090", "a100"])
def test_options_for_gpus_take_any_type(option: str, kind: str) -> None:
    """TYPE:COUNT of --gpus and its like, in a script and as a plugin sends it."""
    words = f"{option}={kind}:2 --ntasks=1 --sockets-per-node=1"
    (request,) = read_submission(f"#!/bin/sh\n#SBATCH {words}\n").requests
    assert (request.gpus, request.gpu_type) == (2, kind)
    member = {"--gpus": "tres_per_job"}.get(option, "tres_" + option.removeprefix("--gpus-").replace("-", "_"))
    assert _by_plugin(member, f"gres/gpu:{kind}:2") == (2, kind)


@pytest.mark.parametrize("text", REFUSED)
def test_what_slurm_refuses_is_refused_with_its_place(text: str) -> None:
    """A person is told the line; a plugin's item asks for nothing, and the items beside it count."""
    with pytest.raises(ParseError, match=r"line 2: --gres=.*expected gpu\[:TYPE\]\[:COUNT\]"):
        read_submission(f"#!/bin/sh\n#SBATCH --gres={text}\n")
    assert _by_plugin("tres_per_node", f"gres:{text},gres:gpu:1080ti:2") == (2, "1080ti")


@pytest.mark.parametrize(
    ("submitted", "line"),
    [
        ("sbatch --gres=gpu:1g.10gb:4 x.sh", "#SBATCH --gres=gpu:1g.10gb:1"),
        ("sbatch --gres=gpu:1g.10gb x.sh", "#SBATCH --gres=gpu:1g.10gb:1"),
        ("sbatch --gpus=3090:4 x.sh", "#SBATCH --gpus=3090:2"),
        ("sbatch -G 1080ti x.sh", "#SBATCH -G 1080ti:2"),
        ("sbatch --gres=gres:gpu:t4:2 x.sh", "#SBATCH --gres=gpu:t4:1"),
    ],
)
def test_a_suggested_line_keeps_the_type(submitted: str, line: str) -> None:
    """The line for the script asks for the type that the submit line asked for."""
    assert gpu_request(job(submit_line=submitted, gpu_type="other")).line(2, 1) == line


@pytest.mark.parametrize(
    ("text", "count"),
    [("2", 2), ("1k", 1024), ("1M", 1 << 20), ("1mb", 10**6), ("9P", (1 << 31) - 1), ("9" * 20, None), ("1g.1", None),
     ("", None), ("-1", None), ("1kk", None), ("٣", None)],
)  # fmt: skip
def test_a_count_is_a_number_with_a_suffix(text: str, count: int | None) -> None:
    """As _is_valid_number() of Slurm, but no larger than any cluster; what it takes for no number is a type."""
    assert count_of(text) == count


@given(st.text(alphabet="gpures:/=,()019ktbi. a", max_size=60))
def test_any_text_is_counts_or_a_parse_error(text: str) -> None:
    """Nothing else comes out, and no count is below 0 or above 2^31 - 1."""
    for reader in (gpu_item, typed_count):
        try:
            found = reader(text)
        except GpuwasteError:
            continue
        assert found is None or 0 <= found[1] < 1 << 31
    assert all(0 <= count < 1 << 31 for _, count in gpu_items(text))


def test_gpus_of_many_tasks_are_bounded() -> None:
    """A count that is none of any cluster stays the largest one, however many tasks ask for it."""
    job = {"user_id": 1, "min_nodes": 1, "min_cpus": 1, "tres_per_task": "gres:gpu:2t", "num_tasks": 2}
    assert read_job_desc(job).asked.gpus == MOST
    (request,) = read_submission("#!/bin/sh\n#SBATCH --gpus-per-task=2t --ntasks=2\n").requests
    assert request.gpus == MOST
