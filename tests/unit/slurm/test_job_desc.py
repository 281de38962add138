"""A plugin's job against the same job read from its script: the request is the same, and no value breaks the reader."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.submit.job_desc import read_job_desc
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission

# What sbatch 22.05 puts into job_desc_msg_t for a script's options; members it leaves unset are left out.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("", {"min_nodes": 1, "min_cpus": 1}),
    ("-n4", {"num_tasks": 4, "min_cpus": 4, "min_nodes": 1}),
    ("-n4 -c2", {"num_tasks": 4, "cpus_per_task": 2, "min_cpus": 8, "min_nodes": 1}),
    ("-c3", {"cpus_per_task": 3, "min_cpus": 3, "min_nodes": 1}),
    ("-N2", {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2}),
    ("-N2-3", {"min_nodes": 2, "max_nodes": 3, "min_cpus": 1}),
    ("-N2-3 -c3", {"min_nodes": 2, "max_nodes": 3, "cpus_per_task": 3, "min_cpus": 3}),
    (
        "-N2-3 --ntasks-per-node=3",
        {"min_nodes": 2, "max_nodes": 3, "ntasks_per_node": 3, "num_tasks": 6, "min_cpus": 6},
    ),
    ("-N2 -n4 -c2", {"min_nodes": 2, "max_nodes": 2, "num_tasks": 4, "cpus_per_task": 2, "min_cpus": 8}),
    ("-n 2 -N 4", {"min_nodes": 2, "max_nodes": 2, "num_tasks": 2, "min_cpus": 2}),
    ("--mem=4G", {"min_nodes": 1, "min_cpus": 1, "mem_per_node_mb": 4096}),
    ("--mem=0", {"min_nodes": 1, "min_cpus": 1, "mem_per_node_mb": 0}),
    ("-N2 --mem=4G", {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2, "mem_per_node_mb": 4096}),
    (
        "--mem-per-cpu=1G -n4 -c2",
        {"num_tasks": 4, "cpus_per_task": 2, "min_cpus": 8, "min_nodes": 1, "mem_per_cpu_mb": 1024},
    ),
    ("--mem-per-cpu=1G -n4 -O", {"num_tasks": 4, "min_cpus": 1, "min_nodes": 1, "mem_per_cpu_mb": 1024}),
    (
        "--mem-per-gpu=2G --gpus=2",
        {"min_nodes": 1, "min_cpus": 1, "tres_per_job": "gres:gpu:2", "mem_per_tres": "gres:gpu:2048"},
    ),
    (
        "--mem-per-gpu=2G --gres=gpu:2",
        {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu:2", "mem_per_tres": "gres:gpu:2048"},
    ),
    ("--gres=gpu", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu"}),
    ("--gres=gpu:2", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu:2"}),
    ("--gres=gpu:a100:2", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu:a100:2"}),
    ("--gres=gpu:a100:2", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres/gpu:a100:2"}),  # from 24.11 on
    ("--gres=gpu:a100", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu:a100"}),
    ("-N2 --gres=gpu:2", {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2, "tres_per_node": "gres:gpu:2"}),
    ("--gres=none", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:none"}),
    ("--gres=gpu:0", {"min_nodes": 1, "min_cpus": 1, "tres_per_node": "gres:gpu:0"}),
    ("--gpus=2", {"min_nodes": 1, "min_cpus": 1, "tres_per_job": "gres:gpu:2"}),
    ("--gpus=a100:2,v100:1", {"min_nodes": 1, "min_cpus": 1, "tres_per_job": "gres:gpu:a100:2,gres:gpu:v100:1"}),
    ("-G 3 -N2", {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2, "tres_per_job": "gres:gpu:3"}),
    ("--gpus=1k", {"min_nodes": 1, "min_cpus": 1, "tres_per_job": "gres:gpu:1k"}),
    (
        "--gpus-per-node=a100:2 -N2",
        {"min_nodes": 2, "max_nodes": 2, "min_cpus": 2, "tres_per_node": "gres:gpu:a100:2"},
    ),
    ("--gpus-per-task=1 -n2", {"num_tasks": 2, "min_cpus": 2, "min_nodes": 1, "tres_per_task": "gres:gpu:1"}),
    (
        "--gpus-per-task=1 --gpus=2",
        {"min_cpus": 1, "min_nodes": 1, "tres_per_task": "gres:gpu:1", "tres_per_job": "gres:gpu:2"},
    ),
    (
        "--gpus-per-task=2 --gpus=4 --cpus-per-gpu=3",
        {
            "min_cpus": 1,
            "min_nodes": 1,
            "tres_per_task": "gres:gpu:2",
            "tres_per_job": "gres:gpu:4",
            "cpus_per_tres": "gres:gpu:3",
        },
    ),
    (
        "--gpus-per-task=a100:1 --gpus=a100:2 --cpus-per-gpu=2",
        {
            "min_cpus": 1,
            "min_nodes": 1,
            "tres_per_task": "gres:gpu:a100:1",
            "tres_per_job": "gres:gpu:a100:2",
            "cpus_per_tres": "gres:gpu:2",
        },
    ),
    (
        "-n3 --gpus-per-task=a100:2",
        {"num_tasks": 3, "min_cpus": 3, "min_nodes": 1, "tres_per_task": "gres:gpu:a100:2"},
    ),
    (
        "-N2 --gpus-per-socket=2 --sockets-per-node=2",
        {
            "min_nodes": 2,
            "max_nodes": 2,
            "num_tasks": 4,
            "min_cpus": 4,
            "tres_per_socket": "gres:gpu:2",
            "sockets_per_node": 2,
        },
    ),
    (
        "--gpus=4 --ntasks-per-gpu=2",
        {"min_cpus": 1, "min_nodes": 1, "tres_per_job": "gres:gpu:4", "ntasks_per_tres": 2},
    ),
    ("--exclusive -n4", {"num_tasks": 4, "min_cpus": 4, "min_nodes": 1, "shared": 0}),
    ("-t 10", {"min_nodes": 1, "min_cpus": 1, "time_limit": 10}),
    ("-t 1-2:03", {"min_nodes": 1, "min_cpus": 1, "time_limit": 1563}),
    ("-t UNLIMITED", {"min_nodes": 1, "min_cpus": 1, "time_limit": "infinite"}),
    (
        "-p gpu,cpu -q high -A PROJ1",
        {"min_nodes": 1, "min_cpus": 1, "partition": "gpu,cpu", "qos": "high", "account": "PROJ1"},
    ),
    ("--array=1-10%2", {"min_nodes": 1, "min_cpus": 1, "array_inx": "1-10%2"}),
]


@pytest.mark.parametrize(("options", "members"), CASES, ids=[options or "nothing" for options, _ in CASES])
def test_the_request_is_that_of_the_script(options: str, members: dict[str, Any]) -> None:
    """Whoever asks, plugin or `gpuwaste predict FILE`, a model is shown the same request."""
    script = f"#!/bin/bash\n#SBATCH {options}\nsleep 1\n" if options else "#!/bin/bash\nsleep 1\n"
    (expected,) = read_submission(script, user="alice", submit=7, name="job.sh").requests
    desc = read_job_desc({"user_id": 1000, "name": "job.sh", "script": script, "script_bytes": len(script), **members})
    assert desc.request("alice", 7) == expected


def test_bytes_that_are_no_utf8_become_the_same_escapes() -> None:
    """A script with a Latin-1 comment is the same text from a plugin as from the file."""
    script = b"#!/bin/bash\n# caf\xe9\nsleep 1\n"
    (expected,) = read_submission(script, user="a", submit=7, name="x").requests
    encoded = {"b64": base64.b64encode(script).decode()}
    desc = read_job_desc({"user_id": 1, "name": "x", "min_nodes": 1, "min_cpus": 1, "script": encoded})
    assert desc.request("a", 7) == expected


def test_what_policies_need_is_read() -> None:
    """Comment, whole nodes, script hash, het component, a trial, --time-min, array."""
    desc = read_job_desc(
        {
            "user_id": 5, "comment": "gpuwaste:override=why", "shared": 0, "script_hash": "00000000deadbeef",
            "het_job_offset": 2, "test_only": True, "time_min": 5, "array_inx": "0-3", "script": "#!/bin/sh\n",
        }
    )  # fmt: skip
    assert (desc.uid, desc.asked.comment, desc.asked.whole_node) == (5, "gpuwaste:override=why", True)
    assert desc.script_hash == "00000000deadbeef"
    assert (desc.het_offset, desc.test_only, desc.time_min_s, desc.asked.is_array) == (2, True, 300, True)


@pytest.mark.parametrize(
    ("members", "interactive"),
    [({}, True), ({"script": "#!/bin/sh\n"}, False), ({"script_bytes": 9_000_000}, False), ({"job_id": 7}, False)],
)
def test_a_job_without_a_script_is_interactive(members: dict[str, Any], interactive: bool) -> None:
    """Of srun and salloc there is none; a script that was too large to send is one all the same."""
    assert read_job_desc({"user_id": 1, **members}).asked.interactive is interactive


def test_a_modification_changes_what_it_says_and_no_more() -> None:
    """`scontrol update TimeLimit=` of a job leaves its other amounts as they were submitted."""
    known = JobRequest("alice", 5, "proj", "gpu", "q", "train", 3600, 2, 8, 1 << 30, 4, "a100", script="#!/bin/sh\n")
    desc = read_job_desc({"job_id": 7, "user_id": 0, "time_limit": 30})
    assert desc.changed(known, 9) == JobRequest(
        "alice", 9, "proj", "gpu", "q", "train", 1800, 2, 8, 1 << 30, 4, "a100", script="#!/bin/sh\n"
    )


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("b64"), inner, max_size=3)
    ),
    max_leaves=6,
)
_MEMBERS = [
    "user_id",
    "job_id",
    "name",
    "account",
    "partition",
    "qos",
    "time_limit",
    "time_min",
    "min_nodes",
    "max_nodes",
    "min_cpus",
    "num_tasks",
    "cpus_per_task",
    "ntasks_per_node",
    "mem_per_node_mb",
    "mem_per_cpu_mb",
    "mem_per_tres",
    "tres_per_job",
    "tres_per_node",
    "tres_per_socket",
    "shared",
    "tres_per_task",
    "sockets_per_node",
    "comment",
    "array_inx",
    "het_job_offset",
    "script",
    "script_bytes",
    "script_hash",
    "test_only",
]


@given(st.dictionaries(st.sampled_from(_MEMBERS), _VALUES, max_size=12))
def test_no_value_breaks_the_reader(members: dict[str, Any]) -> None:
    """Whatever stands in a member, a request comes of it whose amounts are not negative and whose texts are UTF-8."""
    request = read_job_desc(members, uid=7).request("u", 1)
    assert request.gpus >= 0
    assert all(amount is None or amount >= 0 for amount in (request.nodes, request.cpus, request.mem_b))
    for text in (request.name, request.account, request.partition, request.qos, request.gpu_type, request.script or ""):
        text.encode("utf-8")


@pytest.mark.parametrize("job", [None, [], "job", 7, True])
def test_no_job_is_an_error(job: object) -> None:
    """What is no object has no job in it."""
    with pytest.raises(ParseError, match="no job"):
        read_job_desc(job)


@given(st.text(max_size=60) | st.from_regex(r"(gres[:/])?gpu[:=]?[\w.]{0,9}[:=]?\d{0,12}[km]?", fullmatch=True))
def test_any_list_of_resources_is_read_or_passed_over(text: str) -> None:
    """A user chooses what stands in --gres; the count stays within bounds."""
    assert 0 <= read_job_desc({"user_id": 1, "tres_per_node": text, "min_nodes": 3}).asked.gpus <= 3 * ((1 << 31) - 1)
