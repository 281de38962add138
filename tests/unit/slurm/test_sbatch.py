"""Batch scripts without a cluster: the rules that tests/contract compares with sbatch, and what is refused in words."""

import contextlib
import gc
import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import MAX_SCRIPT_B, SbatchSubmission, read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_options import OPTIONS, candidates

GIB = 1 << 30


def _read(lines: str, *argv: str, env: Mapping[str, str] | None = None) -> SbatchSubmission:
    return read_submission(
        f"#!/bin/bash\n{lines}\nsleep 1\n", read_argv(argv), env, user="alice", submit=7, name="job.sh"
    )


def _is_one_line(error: GpuwasteError) -> None:
    assert str(error).count("\n") == 0


def _one(lines: str, *argv: str, env: Mapping[str, str] | None = None) -> JobRequest:
    (request,) = _read(lines, *argv, env=env).requests
    return request


@pytest.mark.parametrize(
    "form", ["-t 10", "-t10", "--time=10", "--time 10", "-Ht10", "-t '10'", "-t 1\\0", "--time\n#SBATCH 10"]
)
def test_every_form_of_an_option_is_read(form: str) -> None:
    """Short and long, glued, quoted, grouped, over two lines: ten minutes."""
    assert _one(f"#SBATCH {form}").time_limit_s == 600


def test_a_whole_request_is_read() -> None:
    """All that a model looks at, from one script."""
    request = _one(
        "#SBATCH -J train -A Physics -p gpu -q high -a 1-4\n"
        "#SBATCH --nodes=2-4 --ntasks-per-node=2 -c 2 --mem=8G --gres=gpu:a100:2 -t 1-0"
    )
    assert request == JobRequest(
        user="alice", submit=7, account="physics", partition="gpu", qos="high", name="train", time_limit_s=86400,
        nodes=2, cpus=8, mem_b=16 * GIB, gpus=4, gpu_type="a100", is_array=True, script=request.script,
        whole_node=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "environ", "whole"),
    [
        ("--exclusive", {}, True),
        ("--exclusive=user", {}, False),
        ("--exclusive=mcs", {}, False),
        ("--exclusive -s", {}, False),
        ("-s --exclusive", {}, True),
        ("-s", {"SBATCH_EXCLUSIVE": "exclusive"}, True),
        ("--exclusive", {"SBATCH_EXCLUSIVE": "user"}, False),
        ("--gres=gpu:4", {}, False),
    ],
)
def test_whole_nodes_are_those_of_exclusive_alone(words: str, environ: dict[str, str], whole: bool) -> None:
    """--exclusive without a value asks for whole nodes; of it and --oversubscribe the later one counts."""
    (request,) = read_submission(f"#!/bin/sh\n#SBATCH {words}\n", environ=environ).requests
    assert request.whole_node is whole


@pytest.mark.parametrize(
    ("words", "amounts"),
    [
        ("-N2-4 --ntasks-per-node=2 -c4", (2, 4, 0)),
        ("--gpus=4 --gpus-per-node=2 --mem-per-cpu=10", (2, 1, 4)),
        ("-n4 --gpus=5 --ntasks-per-gpu=2 -c2", (1, 20, 5)),
        ("-n4 --gpus=3 --ntasks-per-gpu=2 -c2", (1, 8, 3)),
        ("-N3 --ntasks-per-gpu=2", (3, 6, 3)),
        ("-N2 --cores-per-socket=4 --ntasks-per-gpu=1", (2, 8, 8)),
        ("--gres=gpu:2 --gpus-per-node=1 -N2", (2, 2, 4)),
        ("--gres=gpu:2,gpu:1", (1, 1, 2)),
        ("--gpus=0 --gres=gpu:1", (1, 1, 1)),
        ("--gpus=a100", (1, 1, 1)),
        ("--gpus=3 --gpus-per-socket=2 --sockets-per-node=2", (1, 1, 4)),
        ("-N2 --gpus-per-node=2 --gpus-per-task=1", (2, 2, 4)),
        ("-N1 --cores-per-socket=2 -B 2", (1, 2, 0)),
        ("-N1 -B 2 --cores-per-socket=2", (1, 4, 0)),
        ("--gpus-per-task=2 --gpus=4 --cpus-per-gpu=3", (1, 12, 4)),
        ("-N1-2 --gpus-per-task=a100:1 --gpus=a100:2 --cpus-per-gpu=2", (1, 2, 2)),
        ("-N1-2 --ntasks-per-node=3 --gpus=2 --gpus-per-task=1", (1, 2, 2)),
        ("-w gpu[1-2] -N1-3 --gpus=2 --gpus-per-task=2", (2, 2, 2)),
        ("-w gpu1,gpu1", (1, 1, 0)),
        ("-w 'gpu1 gpu2' -N1-3 -c3", (2, 3, 0)),
        ("-N4,2", (2, 1, 0)),
        ("-w gpu[1-2] -N1", (1, 1, 0)),
        ("-N1-4:2", (1, 1, 0)),
        ("--gres=gpu=2", (1, 1, 2)),
        ("-N2 --gres=gres/gpu:a100=3,license=4", (2, 2, 6)),
        ("-G a100=2", (1, 1, 2)),
    ],
)
def test_amounts_are_those_that_slurmctld_counts(words: str, amounts: tuple[int, int, int]) -> None:
    """Nodes, CPUs and GPUs as 22.05 had them for held jobs; the drawn comparison found each of them."""
    request = _one(f"#SBATCH {words}")
    assert (request.nodes, request.cpus, request.gpus) == amounts


def test_what_nobody_said_is_not_known() -> None:
    """No limit, memory, partition, QOS, account: None and ""; one CPU on one node is what Slurm counts."""
    request = _one("# nothing")
    assert (request.time_limit_s, request.mem_b, request.partition, request.qos, request.account) == (
        None,
        None,
        "",
        "",
        "",
    )
    assert (request.nodes, request.cpus, request.gpus, request.name) == (1, 1, 0, "job.sh")


def test_the_command_line_goes_before_the_environment_and_that_before_the_script() -> None:
    """sbatch(1): environment variables override the script, the command line overrides both."""
    script, env = "#SBATCH -t 1 -J script -p script", {"SBATCH_TIMELIMIT": "2", "SBATCH_JOB_NAME": "env"}
    request = _one(script, "-t", "3", env=env)
    assert (request.time_limit_s, request.name, request.partition) == (180, "env", "script")


def test_a_het_job_is_a_request_for_each_component() -> None:
    """#SBATCH hetjob separates; the command line's last group serves the components after it."""
    found = _read("#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n3 --gres=gpu:1", "-t5", ":", "-t6").requests
    assert [(r.cpus, r.gpus, r.time_limit_s) for r in found] == [(2, 0, 300), (3, 1, 360)]


def test_a_later_component_takes_over_what_belongs_to_the_job() -> None:
    """Account, QOS, name, limit and memory come from the component before; nodes, tasks, GPUs and partition do not."""
    first, second, third = _read(
        "#SBATCH -A proj -q high -J train -t 30 --mem=1G -N2 -n8 --gres=gpu:2 -p gpu\n"
        "#SBATCH hetjob\n#SBATCH -n3 -t 5\n#SBATCH hetjob\n#SBATCH -c2"
    ).requests
    assert (first.account, first.qos, first.name, first.time_limit_s, first.mem_b) == (
        "proj",
        "high",
        "train",
        1800,
        2 * GIB,
    )
    assert (second.account, second.qos, second.name, second.time_limit_s, second.mem_b) == (
        "proj",
        "high",
        "train",
        300,
        GIB,
    )
    assert (second.nodes, second.cpus, second.gpus, second.partition) == (1, 3, 0, "")
    assert (third.time_limit_s, third.cpus, third.name) == (300, 2, "train")


def test_all_groups_of_a_command_line_reach_the_first_component() -> None:
    """The whole command line is read once before it is read group by group."""
    found = _read("#SBATCH -n2", "-c2", ":", "-t", "9", "-n3").requests
    assert [(r.time_limit_s, r.cpus) for r in found] == [(540, 4), (540, 3)]


@pytest.mark.parametrize(
    ("lines", "argv", "env", "mem_mib"),
    [
        ("#SBATCH --mem-per-cpu=3 -n2", (), {"SBATCH_MEM_PER_NODE": "70"}, [6]),
        ("#SBATCH --mem=3\n#SBATCH hetjob\n#SBATCH -n2", (), {"SBATCH_MEM_PER_CPU": "7"}, [3, 3]),
        ("#SBATCH -n2", ("--mem-per-cpu=4", ":", "--mem=100"), {}, [8, 100]),
        ("#SBATCH -n1\n#SBATCH hetjob\n#SBATCH --mem-per-cpu=4", (), {"SBATCH_MEM_PER_NODE": "70"}, [70, 4]),
    ],
)
def test_a_weaker_kind_of_memory_gives_way(
    lines: str, argv: tuple[str, ...], env: dict[str, str], mem_mib: list[int]
) -> None:
    """A variable, or another group of the command line, gives way to the script's and the group's own kind."""
    found = _read(lines, *argv, env=env).requests
    assert [(request.mem_b or 0) >> 20 for request in found] == mem_mib


@pytest.mark.parametrize(
    ("lines", "argv", "env"),
    [
        ("#SBATCH --mem=3\n#SBATCH hetjob\n#SBATCH --mem-per-cpu=5", (), {}),
        ("#SBATCH --mem=3", (), {"SBATCH_MEM_PER_NODE": "70", "SBATCH_MEM_PER_CPU": "7"}),
        ("#SBATCH -n1", ("-n1", ":", "--mem-per-cpu=30"), {"SBATCH_MEM_PER_NODE": "70"}),
    ],
)
def test_two_kinds_of_memory_of_one_rank_are_refused(lines: str, argv: tuple[str, ...], env: dict[str, str]) -> None:
    """Inherited memory counts as the component's own; the message names both places."""
    with pytest.raises(ParseError, match=r"--mem \(.*--mem-per-cpu \("):
        _read(lines, *argv, env=env)


@pytest.mark.parametrize(
    "words", ["--container-image=a.sqsh -n2", "--image a.sqsh -n2", "-n2 --image", "-n 2 --image --quiet"]
)
def test_an_option_of_a_plugin_is_a_note(words: str) -> None:
    """SPANK plugins bring options of their own: the request is read, and the note names option and line."""
    read = _read(f"#SBATCH {words}\n#SBATCH -t 5")
    assert (read.requests[0].cpus, read.requests[0].time_limit_s) == (2, 300)
    (note,) = read.notes
    assert "image (line 2); sbatch rejects them unless a SPANK plugin" in note


def test_a_misspelt_option_is_named_with_the_one_that_is_meant() -> None:
    """A note, since a plugin may have it, and what was probably meant; of many the first five stand there."""
    (note,) = _read("#SBATCH --gpu-per-node=2").notes
    assert "--gpu-per-node (line 2, did you mean --gpus-per-node?)" in note
    (note,) = _read("".join(f"#SBATCH --site-{number}=x\n" for number in range(1000))).notes
    assert "--site-4 (line 6), ...; sbatch" in note
    assert len(note) < 300


def test_on_the_command_line_an_unknown_option_takes_no_word() -> None:
    """The word after it is the script; --name=value says otherwise, and the doubt is known."""
    line = read_argv(["--image", "a.sqsh", "job.sh"])
    assert (line.rest, line.doubtful) == (("a.sqsh", "job.sh"), "image")
    line = read_argv(["--image=a.sqsh", "job.sh"])
    assert (line.rest, line.doubtful) == (("job.sh",), None)


@pytest.mark.parametrize(
    ("words", "mem_b", "limit_s"),
    [
        ("--mem=+4G -t 1-", 4 * GIB, 86400),
        ("--mem=' 4G' -t 1-0:1", 4 * GIB, 86460),
        ("--mem=1500 -t 1:30", 1500 << 20, 120),
        ("--mem=4gb -t 1-2:03:04", 4 * GIB, 93840),
        ("--mem=1k -t 0:0:59", 1 << 20, 60),
        ("--mem=000000000000000000001M -t 1:2:3", 1 << 20, 3780),
    ],
)
def test_sizes_and_times_are_read_as_by_slurm(words: str, mem_b: int, limit_s: int) -> None:
    """A sign, a B after the unit, KiB rounded up to MiB; a time is rounded up to minutes."""
    (request,) = _read(f"#SBATCH {words}").requests
    assert (request.mem_b, request.time_limit_s) == (mem_b, limit_s)


def test_het_components_are_bounded() -> None:
    """Many empty components in a small script cannot become many requests."""
    with pytest.raises(ParseError, match="more than 1024 het components"):
        _read("#SBATCH hetjob\n" * 5000)
    with pytest.raises(UsageError, match="more than 1024 het components"):
        read_argv([":"] * 5000)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("#SBATCH -n1\n#SBATCH --foo{}=1", "line 3: unknown option --foo{}"),
        ("#SBATCH --=1", "line 2: unknown option --"),
        ("#SBATCH -y", "line 2: unknown option -y"),
        ("#SBATCH --mem-per=1", "line 2: option --mem-per can mean --mem-per-cpu or --mem-per-gpu"),
        ("#SBATCH --time", "line 2: option --time requires a value"),
        ("#SBATCH --hold=3", "line 2: option --hold takes no value"),
        ("#SBATCH -n2\n\n#SBATCH --time=5 foo", "line 4: 'foo' is not an option"),
        ("#SBATCH -J 'a b", "line 2: the quote ' is never closed"),
        ("#SBATCH : -n2", "line 2: a word begins with `:`"),
        ("#SBATCH -t soon", "line 2: --time=soon: expected"),
        ("#SBATCH -n0", "line 2: --ntasks=0: expected a whole number"),
        ("#SBATCH --mem=1.5G", "line 2: --mem=1.5G: expected"),
        ("#SBATCH --mem=1500B", "line 2: --mem=1500B: expected"),
        ("#SBATCH --mem-per-cpu=1500b", "line 2: --mem-per-cpu=1500b: expected"),
        ("#SBATCH --mem=1KiB", "line 2: --mem=1KiB: expected"),
        ("#SBATCH -t 1-:30", "line 2: --time=1-:30: expected"),
        ("#SBATCH -t 1-2:", "line 2: --time=1-2:: expected"),
        ("#SBATCH -t 5:", "line 2: --time=5:: expected"),
        ("#SBATCH -t 1::3", "line 2: --time=1::3: expected"),
        ("#SBATCH --gres=gpu==2", "line 2: --gres=gpu==2: expected"),
        ("#SBATCH --gres=gpu:1,,gpu:2", "line 2: --gres=gpu:1,,gpu:2: expected"),
        ("#SBATCH --mem=4G\n#SBATCH --mem-per-cpu=1G", "--mem (line 2) and --mem-per-cpu (line 3)"),
        ("#SBATCH -n1\r", "line 2: has a DOS line end"),
        ("sl\0eep", "NUL character"),
    ],
)
def test_a_refusal_names_the_line_and_the_option(lines: str, words: str) -> None:
    """What sbatch refuses is refused with its place."""
    with pytest.raises(ParseError) as error:
        _read(lines)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"sleep 1\n", "line 1: does not begin with #!"),
        (b"\n#!/bin/sh\n", "line 1"),
        (b"#!/bin/sh\n" + b"#" * MAX_SCRIPT_B, "at most"),
        (b"\x7fELF\0\0", "NUL"),
    ],
)
def test_what_is_no_script_is_said_in_one_line(data: bytes, words: str) -> None:
    """Empty, no interpreter, huge, a program."""
    with pytest.raises(ParseError, match=words):
        read_submission(data)


def test_wrong_use_of_the_command_line_is_wrong_usage() -> None:
    """Exit code 2, where a script gives 1."""
    for argv in (["--n{}pe"], ["-t"], ["--wrap=x", "y"], ["--help"]):
        with pytest.raises(UsageError):
            read_argv(argv)
    with pytest.raises(UsageError, match="the command line"):
        _read("", "-t", "soon")
    with pytest.raises(ParseError, match="SBATCH_TIMELIMIT"):
        _read("", env={"SBATCH_TIMELIMIT": ""})


def test_options_of_later_releases_are_known_by_their_whole_name() -> None:
    """An abbreviation means the same in every release, and what cannot be counted is said."""
    assert [option.name for option in candidates("container")] == ["container"]
    assert candidates("tres-per-t") == ()
    assert "--tres-per-task is not read here" in _read("#SBATCH --tres-per-task=cpu:2").notes[0]


def test_lines_of_other_batch_systems_are_told() -> None:
    """#PBS is not read, and the note says on which lines; --ignore-pbs makes that moot."""
    lines = "#PBS -l walltime=1:00:00\n#SBATCH -n1\n#BSUB -W 10"
    assert "line 2, 4: #PBS and #BSUB are not read here" in _read(lines).notes[0]
    assert not _read(f"#SBATCH --ignore-pbs\n{lines}").notes


def test_names_of_any_bytes_are_kept_as_text() -> None:
    """Latin-1 and control characters: escapes and themselves, no error, and JSON can hold them."""
    read = read_submission(b"#!/bin/sh\n#SBATCH -J '\xe9t\xe9\x1b[31m'\n")
    assert read.requests[0].name == "\\xe9t\\xe9\x1b[31m"
    argv = read_argv(["-J", "\udce9"])
    assert read_submission("#!/bin/sh\n", argv).requests[0].name.encode() == b"\\xe9"


def test_wrap_stands_in_for_a_script() -> None:
    """The job is named wrap and its script is what sbatch makes of the command."""
    (request,) = read_submission(b"", read_argv(["--wrap=python x.py", "-n2"])).requests
    assert (request.name, request.cpus, request.script) == ("wrap", 2, "#!/bin/sh\n\npython x.py\n")


def _cpu_s(text: str) -> float:
    gc.disable()  # it would walk the objects of all tests, now and then
    start = time.process_time()
    with contextlib.suppress(GpuwasteError):
        read_submission(f"#!/bin/sh\n{text}\n")
    took_s = time.process_time() - start
    gc.enable()
    return took_s


@pytest.mark.parametrize(
    ("hostile", "size"),
    [
        (lambda n: "#SBATCH -" + "H" * n, 1 << 15),
        (lambda n: "#SBATCH " + "-H " * n, 1 << 14),
        (lambda n: "".join(f"#SBATCH --site-{number}\n" for number in range(n)), 1 << 12),
        (lambda n: "#SBATCH --gres=" + "gpu:1," * n + "gpu", 1 << 14),
        (lambda n: "#SBATCH -w " + "a[1]" * n, 1 << 14),
        (lambda n: "#SBATCH -w " + "a1," * n, 1 << 14),
        (lambda n: "#PBS\n" * n, 1 << 14),
    ],
    ids=["letters", "words", "unknown", "gres", "brackets", "nodes", "foreign"],
)
def test_twice_the_script_is_twice_the_work(hostile: Callable[[int], str], size: int) -> None:
    """CPU time of a text of double length stays below three times that of the single one, in the best of five tries."""
    assert any(_cpu_s(hostile(2 * size)) < 3 * _cpu_s(hostile(size)) for _ in range(5))


def test_names_of_unknown_options_are_not_kept() -> None:
    """The table of abbreviations is bounded, whatever names scripts choose."""
    _read("".join(f"#SBATCH --site-{number}\n" for number in range(5000)))
    assert candidates.cache_info().currsize <= 512


WORDS = st.one_of(
    st.sampled_from([f"--{option.name}" for option in OPTIONS]),
    st.sampled_from([f"-{option.letter}" for option in OPTIONS if option.letter]),
    st.sampled_from(
        [
            "hetjob",
            "--site=x",
            "--site",
            "--mem=1G",
            "--",
            ":",
            "''",
            "#",
            "\\",
            "gpu:a100:2",
            "1-2",
            "10:00",
            "4G",
            "0",
            "99999999999",
            "=",
        ]
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6),
)


@given(st.lists(st.lists(WORDS, max_size=5), max_size=5), st.lists(WORDS, max_size=4))
def test_any_directives_give_requests_or_one_line(lines: list[list[str]], argv: list[str]) -> None:
    """Whatever stands there: a request of plain numbers, or a GpuwasteError of one line."""
    script = "#!/bin/sh\n" + "".join(f"#SBATCH {' '.join(words)}\n" for words in lines)
    try:
        found = read_submission(script, read_argv(argv)).requests
    except GpuwasteError as error:
        _is_one_line(error)
        return
    for request in found:
        assert (request.cpus or 0) >= 0
        assert request.gpus >= 0
        assert request.time_limit_s is None or request.time_limit_s % 60 == 0


@given(st.binary(max_size=300))
def test_any_bytes_give_requests_or_an_error_of_ours(data: bytes) -> None:
    """Binary rubbish after a shebang never ends in another exception."""
    try:
        read_submission(b"#!/bin/sh\n#SBATCH " + data)
    except GpuwasteError as error:
        _is_one_line(error)
