"""Which options reach which component: our reader against what `sbatch -vv` prints for each of them."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_options import ALIASES, OPTIONS
from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = pytest.mark.cluster
CASES = 500
NO_JOB = {"help", "usage", "version"}
SILENT = {"quiet", "test-only", "verbose", "wrap"}  # sbatch prints nothing of these, or prints them for itself
PRINTED = re.compile(r"sbatch: (\S+) +: (.*)")

# A value of each option, and what has to be asked for with it.
VALUES = dict(
    line.split(maxsplit=1)
    for line in """
account proj1
acctg-freq task=30
array 1-2
batch f
bb x=1
bbf {folder}/bb
begin now+1hour
chdir /tmp
cluster gw
cluster-constraint f
clusters gw
comment hi
constraint f
container /c
context ctx
core-spec 1
cores-per-socket 2
cpu-freq low
cpus-per-gpu 2 --gpus=1
cpus-per-task 2
deadline now+1hour
delay-boot 10
dependency afterok:1
distribution block
error err
exclude node9
export ALL
export-file {folder}/bb
extra-node-info 1:2
gid alice
gpu-bind closest
gpu-freq low
gpus 2
gpus-per-node 2
gpus-per-socket 1 --sockets-per-node=1
gpus-per-task 1 -n1
gres gpu:1
gres-flags disable-binding
hint nomultithread
input in
job-name nm
kill-on-invalid-dep yes
licenses lic
mail-type ALL
mail-user u@x
mcs-label lab
mem 100
mem-bind local
mem-per-cpu 100
mem-per-gpu 100 --gpus=1
mincpus 2
network net
nice 5
nodefile {folder}/nodes
nodelist gpu1
nodes 2
ntasks 2
ntasks-per-core 1
ntasks-per-gpu 1 --gpus=1
ntasks-per-node 2
ntasks-per-socket 1
ntasks-per-tres 1 --gpus=1
open-mode append
output out
partition cpu
power level
prefer f
priority 7
profile task
propagate ALL
qos normal
reservation res
signal USR1@10
sockets-per-node 2
switches 1
tasks-per-node 2
thread-spec 1
threads-per-core 1
time 5
time-min 3
tmp 10
uid alice
wait-all-nodes 1
wckey wck
exclusive user
""".strip().splitlines()
)
REMOVED = {"power"}  # after 22.05
FIRST_OPTIONS = [option for option in OPTIONS if not option.later and option.name not in NO_JOB | SILENT]


@dataclass(frozen=True)
class Drawn:
    """A script, the words before it, and the environment."""

    script: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None


class Sbatch:
    """`sbatch -vv --test-only`, which prints the options of each component and submits nothing."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self._cluster = cluster
        self.release = cluster.release
        self.folder = cluster.directory / "components"
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o755)
        (self.folder / "bb").write_text("#BB x\n")
        (self.folder / "nodes").write_text("gpu1\n")

    def components(self, drawn: Drawn, user: str = "alice") -> list[dict[str, str]] | None:
        """Return name -> value of each component as printed; None where sbatch itself refuses."""
        path = self.folder / "job.sbatch"
        path.write_text(drawn.script)
        argv = ["sbatch", "-vv", "--test-only", *drawn.argv, str(path)]
        said = self._cluster.run(argv, user, env=drawn.env, check=False).stderr
        found: list[dict[str, str]] = []
        for line in said.splitlines():
            if line == "sbatch: defined options":
                found.append({})
            elif found and (printed := PRINTED.fullmatch(line)):
                found[-1].setdefault(printed[1], printed[2])
        if "sbatch: fatal:" in said or not found:
            return None
        return [{name: value for name, value in one.items() if name not in SILENT} for one in found]


@pytest.fixture
def sbatch(cluster: LoopbackCluster) -> Sbatch:
    return Sbatch(cluster)


def _ours(drawn: Drawn) -> list[dict[str, str | None]]:
    line = read_argv([*drawn.argv, "job.sbatch"])
    read = read_submission(drawn.script, line, drawn.env)
    return [{name: given.value for name, given in one.items() if name not in SILENT} for one in read.options]


def test_a_later_component_takes_over_what_sbatch_lets_it(sbatch: Sbatch) -> None:
    """Each option of 22.05, given to the first component alone: the second one has it here where sbatch prints it."""
    wrong = []
    for option in FIRST_OPTIONS:
        if option.name in REMOVED and sbatch.release > (22, 5):
            continue
        value, _, more = VALUES.get(option.name, "").partition(" ")
        word = f"--{option.name}" + (f"={value}" if value else "")
        first = f"{word} {more}".format(folder=sbatch.folder)
        other = "--spread-job" if option.name != "spread-job" else "--contiguous"
        drawn = Drawn(f"#!/bin/sh\n#SBATCH {first}\n#SBATCH hetjob\n#SBATCH {other}\nsleep 1\n")
        theirs = sbatch.components(drawn, "root")
        assert theirs is not None, f"sbatch refuses {first}"
        assert len(theirs) == 2, f"sbatch refuses {first}"
        ours = _ours(drawn)
        name = ALIASES.get(option.name, option.name)
        seen = [not {option.name, name}.isdisjoint(one) for one in theirs]
        if seen != [name in one for one in ours]:
            wrong.append(f"{first}: sbatch {seen}, we {[name in one for one in ours]}")
    assert len(FIRST_OPTIONS) > 95
    assert not wrong, "\n".join(wrong)


# Of these sbatch prints the value as it was given, or as `_same` has it: it lowers --nodes to the tasks, and raises
# --mincpus to the CPUs of one.
DRAWN = {
    "account": ("proj1", "proj2"),
    "comment": ("a", "b"),
    "constraint": ("f", "g"),
    "cores-per-socket": ("1", "2"),
    "cpus-per-task": ("2", "3"),
    "exclude": ("node8", "node9"),
    "gres": ("gpu:1", "gpu:a100:2"),
    "job-name": ("one", "two"),
    "licenses": ("lic", "lic2"),
    "mail-user": ("u@x", "v@x"),
    "mem": ("100", "2G"),
    "mem-per-cpu": ("50", "1G"),
    "nice": ("5", "6"),
    "nodes": ("1",),
    "ntasks": ("1", "2", "4"),
    "ntasks-per-node": ("1", "2"),
    "partition": ("cpu", "gpu"),
    "priority": ("7", "8"),
    "qos": ("normal", "high"),
    "reservation": ("res", "res2"),
    "signal": ("USR1@10", "USR2@20"),
    "time": ("5", "1:00:00", "1-0", "0:90"),
    "time-min": ("3", "4"),
    "tmp": ("10", "20"),
    "wckey": ("w", "v"),
    **dict.fromkeys(("hold", "contiguous", "overcommit", "reboot", "spread-job", "use-min-nodes"), ("",)),
}
VARIABLES = {o.variable: o.name for o in OPTIONS if o.variable and o.name in DRAWN}


def _words(draw: random.Random, most: int) -> list[str]:
    names = draw.sample(sorted(DRAWN), draw.randrange(most))
    values = ((name, draw.choice(DRAWN[name])) for name in names)
    return [f"--{name}={value}" if value else f"--{name}" for name, value in values]


def _drawn(draw: random.Random) -> Drawn:
    components = [" ".join(_words(draw, 7)) for _ in range(draw.choice((1, 2, 2, 3, 4)))]
    script = "\n#SBATCH hetjob\n".join(f"#SBATCH {words}" for words in components)
    variables = draw.sample(sorted(VARIABLES), draw.choice((0, 0, 1, 2, 4)))
    env = {variable: draw.choice(DRAWN[VARIABLES[variable]]) or "1" for variable in variables}
    argv = _words(draw, 4)
    for _ in range(draw.choice((0, 0, 1, 2))):
        argv += [":", *_words(draw, 4)]
    return Drawn(f"#!/bin/sh\n{script}\nsleep 1\n", tuple(argv), env)


def _same(name: str, printed: str, ours: str | None) -> bool:
    """Tell whether sbatch's print of a value is the value."""
    if name in {"time", "time-min"}:
        days, _, clock = printed.rpartition("-")
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        whole = int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds
        wanted = {"5": 300, "1:00:00": 3600, "1-0": 86400, "0:90": 120, "3": 180, "4": 240}
        return whole == wanted[ours or ""]
    return printed in {ours, f"gres:{ours}", f"gres/{ours}", "set" if not ours or ours == "1" else ours}


def test_drawn_submissions_come_to_the_same_options(sbatch: Sbatch, draw: random.Random) -> None:
    """Hundreds of scripts, command lines and environments: the options of each component and their values."""
    wrong, refused = [], 0
    for _ in range(CASES):
        drawn = _drawn(draw)
        theirs = sbatch.components(drawn)
        try:
            ours = _ours(drawn)
        except GpuwasteError as error:
            refused += 1
            if theirs is not None:
                wrong.append(f"{drawn}: we refuse: {error}")
            continue
        if theirs is None:
            wrong.append(f"{drawn}: sbatch rejects")
        elif [sorted(one) for one in theirs] != [sorted(one) for one in ours]:
            wrong.append(f"{drawn}: sbatch {theirs}, we {ours}")
        else:
            pairs = [(n, v, o[n]) for t, o in zip(theirs, ours, strict=True) for n, v in t.items()]
            wrong += [f"{drawn}: --{n}: sbatch {v}, we {own}" for n, v, own in pairs if not _same(n, v, own)]
    assert refused < CASES // 3
    assert not wrong, f"{len(wrong)} of {CASES}:\n" + "\n".join(wrong[:8])
