"""sbatch's options: names, letters, arguments and environment variables, as sbatch(1) of 22.05 to 26.05 has them."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final


class Argument(Enum):
    """Whether an option takes a value, as getopt_long(3) knows it."""

    NONE = 0
    REQUIRED = 1
    OPTIONAL = 2


@dataclass(frozen=True, slots=True)
class SbatchOption:
    """One option; `name` is the long name without dashes, `letter` and `variable` are "" where there is none.

    `later` marks what releases after 22.05 brought: it is known by its whole name alone, so that an abbreviation means
    here what it means in any release. `inherited` marks what a later het component takes over from the one before it.
    """

    name: str
    letter: str = ""
    argument: Argument = Argument.REQUIRED
    variable: str = ""
    later: bool = False
    inherited: bool = False


ALIASES: Final = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters"}
SEPARATORS: Final = frozenset({"hetjob", "packjob"})

_VALUES: Final = """
account:A:ACCOUNT acctg-freq array:a:ARRAY_INX batch bb bbf begin:b chdir:D cluster cluster-constraint clusters:M
comment constraint:C container context core-spec:S cores-per-socket cpu-freq cpus-per-gpu::CPUS_PER_GPU cpus-per-task:c
deadline delay-boot dependency:d distribution:m error:e exclude:x export export-file extra-node-info:B gid gpu-bind
gpu-freq gpus:G:GPUS gpus-per-node::GPUS_PER_NODE gpus-per-socket gpus-per-task::GPUS_PER_TASK gres::GRES gres-flags
hint input:i job-name:J:JOB_NAME kill-on-invalid-dep licenses:L mail-type mail-user mcs-label mem::MEM_PER_NODE
mem-bind mem-per-cpu::MEM_PER_CPU mem-per-gpu::MEM_PER_GPU mincpus network nodefile:F nodelist:w nodes:N ntasks:n
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output:o
partition:p:PARTITION power prefer priority profile qos:q:QOS reservation signal sockets-per-node switches
tasks-per-node thread-spec threads-per-core time:t:TIMELIMIT time-min tmp uid wait-all-nodes wckey wrap
"""
_FLAGS: Final = """
contiguous help:h hold:H ignore-pbs no-requeue overcommit:O:OVERCOMMIT oversubscribe:s parsable quiet:Q reboot
spread-job test-only usage use-min-nodes verbose:v version:V wait:W
"""
_EITHER: Final = "exclusive::EXCLUSIVE get-user-env nice no-kill:k propagate requeue"
"""Also what takes a value in some releases alone: --get-user-env in 22.05, --requeue in 26.05."""
_LATER_VALUES: Final = "container-id container-type extra mem-update resources segment tres-bind tres-per-task"
_LATER_FLAGS: Final = "consolidate-segments external spread-segments stepmgr"
_LATER_EITHER: Final = "oom-kill-step resv-ports"
# What `sbatch -vv` of 22.05.8 prints for a bare second component when the first one has the option; of the options of
# later releases it can say nothing, and none of them changes what is read here.
_INHERITED: Final = """
account acctg-freq array batch bbf begin chdir cluster cluster-constraint clusters comment container context deadline
delay-boot dependency error exclude export export-file get-user-env gid hint hold ignore-pbs input job-name
kill-on-invalid-dep mcs-label mem nice no-kill no-requeue open-mode output parsable prefer priority profile propagate
qos reboot requeue reservation signal time time-min uid wait wait-all-nodes wckey
"""


def _options(text: str, argument: Argument, *, later: bool = False) -> list[SbatchOption]:
    found = []
    inherited = frozenset(_INHERITED.split())
    for word in text.split():
        name, letter, variable = (*word.split(":"), "", "")[:3]
        variable = f"SBATCH_{variable}" if variable else ""
        found.append(SbatchOption(name, letter, argument, variable, later, name in inherited))
    return found


OPTIONS: Final = (
    *_options(_VALUES, Argument.REQUIRED),
    *_options(_FLAGS, Argument.NONE),
    *_options(_EITHER, Argument.OPTIONAL),
    *_options(_LATER_VALUES, Argument.REQUIRED, later=True),
    *_options(_LATER_FLAGS, Argument.NONE, later=True),
    *_options(_LATER_EITHER, Argument.OPTIONAL, later=True),
)
BY_NAME: Final = {option.name: option for option in OPTIONS}
INHERITED: Final = frozenset(option.name for option in OPTIONS if option.inherited)
BY_LETTER: Final = {option.letter: option for option in OPTIONS if option.letter}


@lru_cache(maxsize=512)  # scripts choose the names
def candidates(prefix: str) -> tuple[SbatchOption, ...]:
    """Return the options that a long name or the beginning of one can mean: one, none, or several that are alike."""
    if prefix in BY_NAME:
        return (BY_NAME[prefix],)
    return tuple(option for option in OPTIONS if option.name.startswith(prefix) and not option.later)
