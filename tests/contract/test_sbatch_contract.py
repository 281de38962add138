"""Our reader of batch scripts against sbatch 22.05 itself: options, scripts, environment, refusals.

What differs for a reason: a limit, memory, partition, QOS or account that nobody named is None or "" here, and a
default of the partition or of the user's association there; all the memory of a node (--mem=0) is not known here; a
type of GPU that the site does not account is named here alone.
"""

import re
import string
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.units import parse_duration_s
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, memory_b, parse_tres
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_options import OPTIONS, Argument
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_commands import tres_of

pytestmark = pytest.mark.cluster
DEF_MEM_PER_CPU_B = 500 * 1024**2
DEFAULT_TIME_S = 600
DEFAULTS = {"partition": "gpu", "qos": "normal", "account": "proj1"}


@dataclass(frozen=True)
class Case:
    """What follows #!/bin/bash, the words before the script, and the environment."""

    lines: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


# Each line is one job's directives.
DIRECTIVES = """
-n 4
-n4 -c2
-c3
-N2
-N2-3
-N2-3 -c3
-N2-3 --ntasks-per-node=3
-N 1-2 -n 5
-N2 -n4 -c2
-N2 --ntasks-per-node=3
-N2 --tasks-per-node=3
-N2 -n3 --ntasks-per-node=2
-n4 --ntasks-per-node=2
-N 1-0
-n 2 -N 4
-n+2
-n' 2'
--mincpus=4
--mem=4G
--mem=4000
--mem=4GB
--mem=4096K
--mem=500k
--mem=0
-N2 --mem=4G
--mem-per-cpu=1G -n4 -c2
--mem-per-cpu=1G -n4 -O
--mem-per-gpu=2G --gpus=2
--mem-per-gpu=2G --gres=gpu:2
--gres=gpu
--gres=gpu:2
--gres gpu:a100:2
--gres=gpu:a100
-N2 --gres=gpu:2
--gres=none
--gres=gpu:0
--gpus=2
--gpus=a100:2
-G2
-G 3 -N2
--gpus=1k
--gpus-per-node=2
--gpus-per-node=a100:2 -N2
--gpus-per-task=1 -n2
--gpus-per-task=1 --gpus=2
-n3 --gpus-per-task=a100:2
-N2 --gpus-per-socket=2 --sockets-per-node=2
--gpus=4 --ntasks-per-gpu=2
--gres=gpu:2 --ntasks-per-gpu=2
--gres=gpu:2 --cpus-per-gpu=4
--gpus=4 --gpus-per-task=2 --cpus-per-gpu=3
--gpus=a100:2 --gpus-per-task=a100:1 --cpus-per-gpu=2
--exclusive -n4
--exclusive=user -N1
-O -n4
-N2 -c3 -O
-HOt 5 -n2
-t 10
-t10:30
-t 1:00:00
-t 1-2
-t 1-
-t 1-2:03
-t 1-02:03:04
-t 0
-t 0:00
-t -1
-t UNLIMITED
-t infinite
-t 90:30
-t 0-0:0:30
--time=30 --time-min=10
-t5 -t6
-p cpu
-p gpu,cpu
-q normal -A PROJ1
-w gpu1,gpu2
-w gpu[1-2] -n1
-w gpu[1-2] -n4
--array=1-10%2 -J x
-B 1:2:1
-N2 -B 1:2:2
-B *:2
-B 1:1 --sockets-per-node=3
-w gpu[1-2] --cores-per-socket=2 --sockets-per-node=3
--cores-per-socket=4
-N2 --cores-per-socket=2
--gpus-per-socket=1 -B 2:3
-n 2 --ntasks-per-gpu=1
--spread-job -n2
-k -n2
--no-kill=off -n2
--nice -n2
--nice=5 -n2
--comment="x # y" --job-name=a/b
-t1\\0
-n2#x
-n2 '' -t7
-n2 hetjob -t 9
-J myhetjob -n3
--job-n x --ntasks-per-n=2 --part cpu
--hold --requ --time=3
""".strip().splitlines()
SCRIPTS = (
    Case("#SBATCH--time=11"),
    Case("#SBATCH --time\n#SBATCH 12"),
    Case("#SBATCH -t13\nsleep 1\n#SBATCH -n 2"),
    Case(" #SBATCH -t13\n##SBATCH -n2\n# SBATCH -n2\n#sbatch -n2\n\n   \n#SBATCH -n3"),
    Case("#SBATCH -t5\n:\n#SBATCH -n2"),
    Case("#SBATCH -t5 \\\n -n2\n#SBATCH -n3"),
    Case("#SBATCH\t-t5\t-n\t2"),
    Case("#SBATCH -n2 -t 5\n#SBATCH hetjob\n#SBATCH -n3 -t 6 -J other"),
    Case("#SBATCH -n2 -t 5\n#SBATCH PackJob -t 9\n#SBATCH -n3 -t 6"),
    Case("#SBATCH -n2 -t 5 # hetjob\n#SBATCH -n3 -t 6"),
    Case("#SBATCH -t 5", ("-n1", ":", "-n2", "-t7")),
    Case("#SBATCH -n2 -t 5\n#SBATCH hetjob\n#SBATCH -n3 -t 6", ("-t9", ":", "-t8")),
    Case("#SBATCH -n2 -t 5\n#SBATCH hetjob\n#SBATCH -n3 -t 6", ("-t9",)),
    Case("#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n3", ("-t5", ":", "-t6")),
    Case("#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2", ("-t5", ":", "-t6", ":", "-t7")),
    Case("#SBATCH -n2 -t 5\n#SBATCH hetjob\n#SBATCH -n3 -t 6", (), {"SBATCH_TIMELIMIT": "9"}),
    Case("#SBATCH -n2 -t5 -J x", (), {"SBATCH_TIMELIMIT": "9", "SBATCH_JOB_NAME": "envname", "SBATCH_GRES": "gpu:1"}),
    Case("#SBATCH -n2 -t5", ("-t10",), {"SBATCH_TIMELIMIT": "9", "SLURM_TIMELIMIT": "3", "SBATCH_MEM_PER_NODE": "2G"}),
    Case("#SBATCH --mem-per-cpu=1G", (), {"SBATCH_MEM_PER_NODE": "3G"}),
    Case("#SBATCH --mem=1G", (), {"SBATCH_MEM_PER_CPU": "3G"}),
    Case("#SBATCH --mem=1G", (), {"SBATCH_MEM_PER_NODE": "3G"}),
    Case("#SBATCH -n4", (), {"SBATCH_OVERCOMMIT": "yes"}),
    Case("#SBATCH -n4", (), {"SBATCH_OVERCOMMIT": "0"}),
    Case("#SBATCH -n4", (), {"SBATCH_OVERCOMMIT": ""}),
    Case(
        "sleep 1", (), {"SBATCH_NTASKS": "3", "SLURM_NTASKS": "2", "SBATCH_ARRAY_INX": "1-2", "SBATCH_PARTITION": "cpu"}
    ),
    Case("#SBATCH --gpus=2", ("--gres=none",)),
    Case("#SBATCH -n2", ("-t", "7", "-J", "x")),
)
REFUSED = (
    *(Case(f"#SBATCH {words}") for words in """
-y
--foo{}=1
--mem-per=1
--tim=6
--hold=3
--time=13 foo --mem=100
--exclusive user
-t5 -- -n2
-t=5
-n=5
-time=5
: -n2
-J 'a b
-N 3-2
-n0
-n4k
-c 0
--mem=1.5G
--mem='2 G'
--mem=4G --mem-per-cpu=1G
--gres=gpu==2
-t 1.5
-t 1:2:3:4
-t '10 '
-t +10
-t unlim
-t
--time
""".strip().splitlines()),
    Case("#SBATCH -t 5\r\nsleep 1"),
    Case("sleep\0"),
    Case("#SBATCH --mem-per-cpu=1G", ("--mem=3G",)),
    Case("sleep 1", (), {"SBATCH_TIMELIMIT": "zz"}),
    Case("sleep 1", (), {"SBATCH_TIMELIMIT": ""}),
    Case("sleep 1", ("--n.pe,",)),
    Case("#" * 10_000_000),
)  # fmt: skip


_LATER_COUNTS = re.compile(r"--cpus-per-gpu|-n4 --ntasks-per-node")
"""Releases after 22.05 count what the job will get before it is scheduled (test_sbatch_tres_contract.py)."""
REMOVED = {"power"}
"""Options of 22.05 that a later release does not have."""
IGNORED = {"autocomplete"}
"""Options of later releases that ask for nothing."""
SOMETIMES = {"get-user-env", "requeue"}
"""Options that take a value in some releases alone."""
LATER = (
    "-N2,4", "-N4,2", "-N1-4:2", "-N1-2,4", "--gres=gpu=2", "--gres=gpu:a100=2", "--gres=gres/gpu=2",
    "--gres=gres/gpu:2", "--gres=gpu=1k", "-G a100=2", "-N1 -w gpu[1-2]",
)  # fmt: skip
"""What sbatch takes since some release after 22.05."""


@pytest.fixture
def folder(cluster: LoopbackCluster) -> Path:
    path = cluster.directory / "scripts"
    path.mkdir(exist_ok=True)
    path.chmod(0o755)
    return path


def _body(case: Case) -> str:
    return f"#!/bin/bash\n{case.lines}\nsleep 1\n"


def _theirs(cluster: LoopbackCluster, folder: Path, case: Case) -> tuple[list[dict[str, str]], str]:
    """Submit held and return the records of all components and what sbatch said."""
    path = folder / "job.sbatch"
    path.write_bytes(_body(case).encode())
    done = cluster.run(["sbatch", "--parsable", "-H", *case.argv, str(path)], "alice", env=dict(case.env), check=False)
    if done.returncode:
        return [], done.stderr
    job = done.stdout.split(";")[0].strip()
    records = cluster.show_job(job)
    cluster.run(["scancel", job])
    return records, done.stderr


def _ours(case: Case) -> Sequence[JobRequest]:
    line = read_argv([*case.argv, "job.sbatch"])
    return read_submission(_body(case), line, case.env, name="job.sbatch").requests


def _difference(record: Mapping[str, str], request: JobRequest) -> list[str]:
    """Return what differs, apart from what the module's text names."""
    tres = parse_tres(tres_of(record))
    gpus = gpu_count(tres)
    limit = parse_duration_s(record["TimeLimit"])
    wanted = {
        "name": request.name,
        "limit": request.time_limit_s or (None if limit is None else DEFAULT_TIME_S),
        "nodes": request.nodes,
        "cpus": request.cpus,
        "memory": request.mem_b or (request.cpus or 0) * DEF_MEM_PER_CPU_B,
        "gpus": request.gpus,
        "type": request.gpu_type,
        "array": request.is_array,
        **{name: getattr(request, name) or value for name, value in DEFAULTS.items()},
    }
    seen = {
        "name": record["JobName"],
        "limit": limit,
        "nodes": int(tres["node"]),
        "cpus": int(tres["cpu"]),
        "memory": memory_b(tres),
        "gpus": gpus.total,
        "type": gpus.type,
        "array": "ArrayTaskId" in record,
        "partition": record["Partition"],
        "qos": record["QOS"],
        "account": record["Account"],
    }
    if record.get("MinMemoryNode") == "0":
        wanted["memory"] = seen["memory"]
        assert request.mem_b is None
    return [f"{name}: sbatch {seen[name]!r}, we {wanted[name]!r}" for name in wanted if seen[name] != wanted[name]]


def test_scripts_come_to_the_same_request(cluster: LoopbackCluster, folder: Path) -> None:
    """Options in every form, het jobs, arrays, environment and command line: as slurmctld has them."""
    wrong = []
    for case in (*(Case(f"#SBATCH {line}") for line in DIRECTIVES), *SCRIPTS):
        records, said = _theirs(cluster, folder, case)
        assert records, f"sbatch refused {case}: {said}"
        requests = _ours(case)
        if len(records) != len(requests):
            wrong.append(f"{case}: {len(records)} components, we say {len(requests)}")
        later = _LATER_COUNTS.search(f"{case}") and cluster.release > (22, 5)
        for record, request in zip(records, requests, strict=False) if not later else ():
            wrong += [f"{case}: {text}" for text in _difference(record, request)]
    assert not wrong, "\n".join(wrong)


def test_what_later_releases_take_comes_to_the_same_request(cluster: LoopbackCluster, folder: Path) -> None:
    """Lists of node counts and counts after an equals sign are read on every release, as those that take them do."""
    wrong = []
    for words in LATER:
        case = Case(f"#SBATCH {words}")
        (request,) = _ours(case)
        if cluster.release >= (24, 11):
            (record,), _ = _theirs(cluster, folder, case)
            wrong += [f"{case}: {text}" for text in _difference(record, request)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: repr(case.lines[:30] + str(case.argv) + str(case.env)))
def test_what_sbatch_refuses_we_refuse_in_one_line(cluster: LoopbackCluster, folder: Path, case: Case) -> None:
    """Unknown and ambiguous options, wrong values, stray words, DOS lines: refused by both, with the place."""
    records, _ = _theirs(cluster, folder, case)
    assert not records, "sbatch takes it"
    with pytest.raises(GpuwasteError) as error:
        _ours(case)
    assert "\n" not in str(error.value)


SPANK = """
#include <stddef.h>
#include <slurm/spank.h>
SPANK_PLUGIN(site, 1);
static int take(int value, const char *text, int remote) { return 0; }
static struct spank_option options[] = {
    {"container-image", "IMAGE", "the image", 1, 1, take}, {"image", "IMAGE", "the image", 1, 2, take},
    {"container-writable", NULL, "a flag", 0, 3, take}, SPANK_OPTIONS_TABLE_END,
};
int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    int i, bad = 0;
    for (i = 0; i < 3; i++) bad |= spank_option_register(spank, &options[i]);
    return bad;
}
"""
PLUGIN_CASES = (
    Case("#SBATCH --container-image=img.sqsh -n2"),
    Case("#SBATCH --container-image img.sqsh -n2"),
    Case("#SBATCH --image\n#SBATCH docker://x/y:1 -n2\n#SBATCH --container-writable\n#SBATCH -t 7"),
    Case("#SBATCH --container-writable --image=x -c3\n#SBATCH hetjob\n#SBATCH -n3 --image y"),
    Case("#SBATCH -t 9", ("--image=x", "-n3", "--container-writable")),
    Case("#SBATCH -t 9", ("--container-writable", "--image=x", ":", "--container-image=y", "-n2")),
)


@pytest.fixture
def site_plugin(cluster: LoopbackCluster, folder: Path) -> Iterator[None]:
    """Give the cluster a SPANK plugin with options of its own for the time of a test."""
    (folder / "site.c").write_text(SPANK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "site.so", folder / "site.c"], check=True)
    stack = Path(cluster.env()["SLURM_CONF"]).with_name("plugstack.conf")
    stack.write_text(f"required {folder / 'site.so'}\n")
    yield
    stack.unlink()


def test_options_of_a_site_s_plugin_change_nothing(cluster: LoopbackCluster, folder: Path, site_plugin: None) -> None:
    """With a real SPANK plugin sbatch takes its options, and we come to the same request, with a note."""
    wrong = []
    for case in PLUGIN_CASES:
        records, said = _theirs(cluster, folder, case)
        assert records, f"sbatch refused {case}: {said}"
        for record, request in zip(records, _ours(case), strict=True):
            wrong += [f"{case}: {text}" for text in _difference(record, request)]
        (note,) = read_submission(_body(case), read_argv([*case.argv, "job.sbatch"])).notes
        assert note.startswith("unknown options ignored: --")
    assert not wrong, "\n".join(wrong)


def test_an_option_that_no_plugin_has_is_refused_by_sbatch_and_noted_here(
    cluster: LoopbackCluster, folder: Path
) -> None:
    """Without the plugin the same scripts are refused by sbatch, which the note says."""
    for case in PLUGIN_CASES:
        records, said = _theirs(cluster, folder, case)
        assert not records
        assert "unrecognized option" in said
        (note,) = read_submission(_body(case), read_argv([*case.argv, "job.sbatch"])).notes
        assert "sbatch rejects them unless a SPANK plugin of the site defines them" in note


def test_the_first_line_and_the_name_are_as_sbatch_has_them(cluster: LoopbackCluster, folder: Path) -> None:
    """No script, no interpreter: refused; standard input is named sbatch and --wrap is named wrap."""
    path = folder / "job.sbatch"
    for text in ("", "sleep 1\n", "\n#!/bin/sh\nsleep 1\n"):
        path.write_text(text)
        assert cluster.run(["sbatch", "-H", str(path)], "alice", check=False).returncode
        with pytest.raises(GpuwasteError):
            read_submission(text)
    for argv, text in ((["-H"], "#!/bin/sh\nsleep 1\n"), (["-H", "--wrap=sleep 1"], "")):
        done = cluster.run(["sbatch", "--parsable", *argv], "alice", stdin=text)
        (record,) = cluster.show_job(done.stdout.strip())
        assert record["JobName"] == read_submission(text, read_argv(argv)).requests[0].name
        cluster.run(["scancel", done.stdout.strip()])


def test_the_table_of_options_is_that_of_sbatch(cluster: LoopbackCluster) -> None:
    """Every option is in the table with its argument, those of 22.05 with their letter; 22.05 has no other."""

    def says(*words: str) -> str:
        return cluster.run(["sbatch", *words], "alice", check=False, stdin="").stderr

    names: set[str] = set()
    for letter in string.ascii_lowercase:
        text = says(f"--{letter}").split("\n")[0]
        if "unrecognized" not in text:
            names |= set(re.findall(r"'--([\w-]{2,})'", text))
    known = {option.name: option for option in OPTIONS}
    ours = {name: option for name, option in known.items() if not option.later}
    assert set(ours) - REMOVED <= names <= set(known) | IGNORED, sorted(names - set(known))
    assert cluster.release > (22, 5) or names == set(ours)
    for name in names & set(known):
        option = known[name]
        if option.argument is Argument.REQUIRED:
            assert "requires an argument" in says(f"--{name}"), name
        elif name not in {"help", "usage", "version"}:
            refused = "doesn't allow an argument" in says(f"--{name}=1", "/nonexistent")
            assert refused == (option.argument is Argument.NONE) or name in SOMETIMES, name
    letters = {option.letter: option.argument for option in ours.values() if option.letter}
    for letter in sorted(set(string.ascii_letters) - {"h", "V"}):
        text = says(f"-{letter}")
        assert ("invalid option" in text) == (letter not in letters), letter
        assert ("requires an argument" in text) == (letters.get(letter) is Argument.REQUIRED), letter
