"""The logs that the scorecard is made of, and those that it has to do without."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_REBUILT: Final = "rebuilt from a simulation's input: no status, no wait"


@dataclass(frozen=True, slots=True)
class Log:
    """One log: its file under ../shared/data, what to know of it, and for how many seeds the model is learnt."""

    name: str
    path: str
    note: str = ""
    seeds: int = 1


LOGS: Final = (
    Log("KTH-SP2", "swf/KTH-SP2-1996-2.1-cln.swf.xz", "", 3),
    Log("LLNL-Atlas", "swf/LLNL-Atlas-2006-2.1-cln.swf.xz", "the limit is missing in a fifth of the rows", 3),
    Log(
        "CEA-Curie 2012-03/04",
        "swf/CEA-Curie-sample-2012-03_04.with_status.swf.xz",
        "most rows do not say how many processors were requested: they have weight 1 in reserved/used",
        3,
    ),
    Log("CEA-Curie 2012-06/07", "swf/CEA-Curie-sample-2012-06_07.with_status.swf.xz", "", 3),
    Log("CTC-SP2", "swf/CTC-SP2-1996-3.1-cln.recon.swf.xz", _REBUILT),
    Log("CEA-Curie", "swf/CEA-Curie-2011-2.1-cln.recon.swf.xz", _REBUILT),
    Log("lublin_256", "swf/lublin_256.swf.xz", "a synthetic model"),
    Log(
        "UiO",
        "slurm/uio_sacct_sample/slurm-sacct.csv",
        "a sample of real sacct output",
    ),
)
CARRIED: Final = {
    "failure": ("KTH-SP2", "LLNL-Atlas", "CEA-Curie 2012-06/07"),
    "walltime": ("KTH-SP2", "CTC-SP2", "CEA-Curie 2012-06/07"),
}
LACKING: Final = (
    (
        "The JFP paper reports on three logs. NetbatchD is not in the public archive. SDSC BLUE is public, and is not "
        "among the files here. CTC-SP2 is here only as rebuilt from a simulation's input, without status, so that its "
        "failures cannot be judged. None of the paper's figures is therefore set beside one of ours; the columns named "
        "JFP protocol show what its kind of input gives on the logs that are here."
    ),
    (
        "philly_jobs has neither users, requests nor states; philly_dre keeps multi-GPU jobs of five minutes and more, "
        "sampled, without requested times: its rates are not a cluster's. The slice of Helios has a time limit that "
        "equals the run time, and is of two virtual clusters. The sample of sacct is of one day. No such trace is "
        "judged: memory (memory) and the use of GPUs (gpu_underused, gpus_needed) have no public log at all, and their "
        "figures come from a site's own history."
    ),
)


def data_of(log: Log, data: Path) -> Path:
    """Return the log's file."""
    return data / log.path
