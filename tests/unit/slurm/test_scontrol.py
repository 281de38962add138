"""Records of jobs are read, and a user's text in them is only text."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob, parse_job, parse_jobs
from gpuwaste.slurm.formats.gpu_positions import GresOnNode

ODD = Path(__file__).parents[2] / "fixtures" / "slurm"


def odd(name: str) -> str:
    return (ODD / f"{name}.txt").read_bytes().decode()


def only(text: str) -> RunningJob:
    listing = parse_jobs(text)
    assert not listing.bad
    assert len(listing.jobs) == 1
    return listing.jobs[0]


def test_reads_each_field() -> None:
    """Identity, times, request and what is held on the node."""
    first, _ = parse_jobs(odd("scontrol_name_with_newlines_and_equals")).jobs
    assert first.name == 'two\n\nJobId=9 words = "x" \U0001f600'
    assert (first.job_id, first.printed_id, first.user, first.uid, first.account) == (2, "2", "alice", 1001, "proj1")
    assert (first.submit, first.start, first.end) == (1700000000, 1700000100, 1700000700)
    assert (first.state, first.partition, first.qos, first.restarts) == ("RUNNING", "gpu", "normal", 1)
    assert (first.n_nodes, first.node_list, first.time_limit_s) == (1, "gpu1", 600)
    assert first.nodes == {"gpu1": GresOnNode((0, 1), 2, ("a100",), cpus=4, memory_b=100 << 20)}
    assert (first.batch, first.exclusive, first.suspended_at) == (True, False, None)
    assert first.tres == "cpu=4,mem=100M,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2"


def test_a_comment_cannot_add_devices() -> None:
    """Nodes= and OverSubscribe= are read where Slurm writes them."""
    job = only(odd("scontrol_comment_with_forged_nodes"))
    assert job.nodes["gpu1"].positions == (0, 1)
    assert not job.exclusive


def test_a_name_that_imitates_records_spoils_only_what_it_imitates() -> None:
    """Both claims to the id are set aside, and the job whose end is hidden; the others stand."""
    listing = parse_jobs(odd("scontrol_name_forges_another_job"))
    assert [job.job_id for job in listing.jobs] == [4]
    assert {record.job_id for record in listing.bad} == {2, 3}


def test_a_known_name_settles_the_record() -> None:
    """With the name from elsewhere, the true end of the name is certain."""
    text = odd("scontrol_name_forges_another_job")
    name = text[text.index("JobName=") + 8 : text.index("\n   UserId=alice")]
    job = parse_job(text, 2, name)
    assert (job.user, job.nodes["gpu1"].positions) == ("alice", (0, 1))
    with pytest.raises(ParseError, match="job 2"):
        parse_job(text, 2, "another")


def test_a_record_that_is_cut_off_is_named_and_the_others_are_kept() -> None:
    """A GRES list that ends in the middle gives no shorter list."""
    listing = parse_jobs(odd("scontrol_cut_off_in_a_gres_list"))
    assert [job.job_id for job in listing.jobs] == [2]
    assert [(bad.job_id, "cut off" in bad.reason) for bad in listing.bad] == [(3, True)]


def test_printed_ids_of_arrays_and_het_jobs() -> None:
    """A task, the tasks that still wait, and a component; a waiting job has no start."""
    task, rest, het = parse_jobs(odd("scontrol_array_and_het")).jobs
    assert (task.printed_id, task.array_job_id, task.array_task_id) == ("10_2", 10, 2)
    assert (rest.printed_id, rest.array_task_id, rest.start, rest.nodes) == ("10_[3-9%1]", None, None, {})
    assert (het.printed_id, het.het_job_id, het.het_offset, het.name) == ("20+1", 20, 1, "het")
    assert het.exclusive
    assert het.time_limit_s is None


def test_the_one_line_form_gives_the_same() -> None:
    """-o prints a record in one line."""
    text = odd("scontrol_array_and_het")
    flat = "\n".join(" ".join(line.strip() for line in record.splitlines()) for record in text.split("\n\n"))
    assert parse_jobs(flat) == parse_jobs(text)


def test_a_long_name_of_blanks_takes_no_long_time() -> None:
    """Reading is linear in what a user can write."""
    text = odd("scontrol_comment_with_forged_nodes")
    blanks = " " * 1_000_000
    job = only(text.replace("JobName=x", f"JobName=x{blanks}").replace("Comment=a", f"Comment={blanks}"))
    assert len(job.name) == 1_000_001


@pytest.mark.parametrize("text", ["", "No jobs in the system\n", "slurm_load_jobs error: Invalid job id specified\n"])
def test_no_record_gives_an_empty_listing(text: str) -> None:
    """Words of the command are no record."""
    assert parse_jobs(text).jobs == ()


def test_another_locale_s_times_are_named() -> None:
    """A time that is no epoch and no ISO text is set aside with the field's name."""
    text = odd("scontrol_comment_with_forged_nodes").replace("StartTime=1700000100", "StartTime=14.Nov.23-22:13")
    (bad,) = parse_jobs(text).bad
    assert "StartTime" in bad.reason


@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    """Cuts and insertions at any place give records or bad records."""
    text = odd("scontrol_name_with_newlines_and_equals")
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 200))
    put = data.draw(
        st.text(max_size=20) | st.sampled_from(["\nJobId=1 JobName=", "\n   UserId=a(1) GroupId=", "(", "["])
    )
    listing = parse_jobs(text[:at] + put + text[at + cut :])
    assert all(isinstance(job, RunningJob) for job in listing.jobs)


@pytest.mark.parametrize(
    ("line", "exclusive"),
    [
        ("OverSubscribe=NO", True),
        ("OverSubscribe=OK", False),
        ("OverSubscribe=NO Exclusive=NO", False),
        ("OverSubscribe=NO Exclusive=NODE", True),
        ("OverSubscribe=NO Exclusive=USER", False),
    ],
)
def test_job_that_has_its_nodes_alone(line: str, exclusive: bool) -> None:
    """Up to 24.11 OverSubscribe=NO says so; 26.05 prints that for every job, and Exclusive=NODE for such a one."""
    text = (ODD / "scontrol_het_26.05.txt").read_text(encoding="utf-8")
    text = re.sub(r"OverSubscribe=\S+(?: Exclusive=\S+)?", line, text)
    assert {job.exclusive for job in parse_jobs(text).jobs} == {exclusive}


def test_the_sluid_is_no_part_of_the_name() -> None:
    """Slurm 26.05 prints it between name and user, before a het job's set of ids."""
    text = (ODD / "scontrol_het_26.05.txt").read_text(encoding="utf-8")
    listing = parse_jobs(text)
    assert not listing.bad
    assert [(job.printed_id, job.name, job.user) for job in listing.jobs] == [
        ("7+0", "wrap", "alice"),
        ("7+1", "wrap", "alice"),
    ]
    assert [job.req_tres for job in listing.jobs] == [
        "cpu=1,mem=62.50G,node=1,billing=1,gres/gpu=1",
        "cpu=2,mem=62.50G,node=1,billing=2",
    ]
    assert parse_job(text, 8, "wrap").name == "wrap"
