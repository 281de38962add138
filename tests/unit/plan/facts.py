"""A site of three partitions and two accounts, submissions to it, and answers of slurmctld, for tests of plans."""

from collections.abc import Mapping, Sequence

from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.core.errors import SlurmError
from gpuwaste.plan.plan_request import PlannedSubmission
from gpuwaste.plan.user_site import Site, read_site
from gpuwaste.slurm.submit.sbatch_run import DryRun

NOW = 1_800_000_000
UID = 1001
PARTITIONS = """\
PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=00:10:00 DisableRootJobs=NO
   MaxNodes=2 MaxTime=3-00:00:00 MinNodes=0
   Nodes=gpu[1-2]
   PriorityTier=1 OverSubscribe=NO
   State=UP TotalCPUs=32 TotalNodes=2
   TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=16.0

PartitionName=big
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   Default=NO QoS=N/A MaxNodes=UNLIMITED MaxTime=UNLIMITED
   Nodes=h1 OverSubscribe=NO State=UP

PartitionName=staff
   AllowGroups=ALL AllowAccounts=proj2 DenyQos=high
   Default=NO QoS=N/A MaxNodes=UNLIMITED MaxTime=1-00:00:00
   Nodes=gpu[1-2] OverSubscribe=EXCLUSIVE State=UP
"""
NODES = """\
NodeName=gpu1 Arch=x86_64
   CPUEfctv=16 CPUTot=16
   Gres=gpu:a100:4
   RealMemory=64000
   State=IDLE
   Partitions=gpu,staff

NodeName=gpu2 Arch=x86_64
   CPUEfctv=16 CPUTot=16
   Gres=gpu:a100:4
   RealMemory=64000
   State=MIXED
   Partitions=gpu,staff

NodeName=h1 Arch=x86_64
   CPUEfctv=16 CPUTot=16
   Gres=gpu:h100:4
   RealMemory=64000
   State=IDLE
   Partitions=big
"""
CONFIG = "ClusterName = gw\nAccountingStorageEnforce = associations,limits,qos\n"
LIMITS = """\
Current Association Manager state

Association Records

ClusterName=gw Account=root UserName= Partition= Priority=0 ID=1
    ParentAccount= Lft=1 DefAssoc=No
    GrpSubmitJobs=N(3) GrpWall=N(0.00)
    GrpTRES=cpu=N(2),gres/gpu=N(2)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=gw Account=proj1 UserName= Partition= Priority=0 ID=3
    ParentAccount=root(1) Lft=4 DefAssoc=No
    GrpSubmitJobs=N(1) GrpWall=N(0.00)
    GrpTRES=cpu=40(1),mem=N(500),gres/gpu=8(6)
    MaxJobs= MaxSubmitJobs= MaxWallPJ=
    MaxTRESPJ=
ClusterName=gw Account=proj1 UserName=alice(1001) Partition= Priority=0 ID=6
    SharesRaw/Norm/Level/Factor=1/0.50/2/0.20
    ParentAccount= Lft=5 DefAssoc=Yes
    GrpSubmitJobs=N(1) GrpWall=N(0.00)
    GrpTRES=cpu=N(1),mem=N(500),gres/gpu=N(2)
    MaxJobs= MaxSubmitJobs= MaxWallPJ=2880
    MaxTRESPJ=

QOS Records

QOS=normal(1)
    GrpSubmitJobs=N(0) GrpWall=N(0.00)
    GrpTRES=cpu=N(0),mem=N(0),gres/gpu=N(0)
    MaxWallPJ=
    MaxTRESPJ=
    Account Limits
        No Accounts
    User Limits
        No Users
QOS=high(2)
    GrpSubmitJobs=N(1) GrpWall=N(0.00)
    GrpTRES=cpu=N(1),mem=65536(500),gres/gpu=6(2)
    MaxWallPJ=60
    MaxTRESPJ=gres/gpu=3
    MaxTRESPN=
    Priority=100
    Account Limits
      proj1
        MaxJobsPA=N(1) MaxSubmitJobsPA=N(1)
        MaxTRESPA=cpu=N(1),gres/gpu=N(2)
    User Limits
      1001
        MaxJobsPU=4(1) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=9(1)
        MaxTRESPU=cpu=N(1),mem=N(500),gres/gpu=5(2)
"""
QOS = "normal|\nhigh|DenyOnLimit\n"
MEMBERS = "proj1||high,normal|\n"
SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:a100:2 -t 12:00:00 --mem=32G\npython train.py\n"


class Answers:
    """Prints what Slurm's commands would; one that is None fails."""

    def __init__(self, **texts: str | None) -> None:
        self.texts: dict[str, str | None] = {
            "partition": PARTITIONS,
            "node": NODES,
            "config": CONFIG,
            "assoc_mgr": LIMITS,
            "assoc": MEMBERS,
            "qos": QOS,
            "squeue": "",
            **texts,
        }

    def text(self, *argv: str) -> str:
        """Return the text for the kind of thing that is shown."""
        found = self.texts[next(word for word in argv if word in self.texts)]
        if found is None:
            raise SlurmError(f"{argv[0]}: exit code 1: no answer")
        return found


def site(**texts: str | None) -> Site:
    """Return the site as alice sees it."""
    return read_site(Answers(**texts), "alice", UID)


def submission(*options: str, script: str = SCRIPT, environ: Mapping[str, str] | None = None) -> PlannedSubmission:
    """Return what alice gives to sbatch."""
    return PlannedSubmission((*options, "train.sh", "1"), script.encode(), environ or {}, "alice", NOW)


def shorter() -> RequestChange:
    """Return what a prediction says of the limit."""
    return RequestChange(
        "#SBATCH --time=02:00:00", "8 jobs ran 95 min", {"time_limit_s": 43200.0}, {"time_limit_s": 7200.0}
    )


def fewer() -> RequestChange:
    """Return what a prediction says of the GPUs."""
    return RequestChange(
        "#SBATCH --gres=gpu:a100:1", "your last 8 such jobs used 1 of 2 GPUs", {"gpus": 2.0}, {"gpus": 1.0}
    )


def targets(failure: float = 0.1) -> tuple[TargetPrediction, ...]:
    """Return what is expected: an hour and a half, seldom more than two."""
    return (
        TargetPrediction("failure", "site model", 100, p=failure),
        TargetPrediction("walltime", "site model", 100, quantiles={"0.5": 5400.0, "0.9": 7000.0}),
    )


def accepted(start: int = NOW + 60) -> DryRun:
    """Return slurmctld's answer to a job that it would take."""
    return DryRun(start=start)


def options_of(words: Sequence[str]) -> str:
    """Return the words before the script as one text."""
    return " ".join(words[: words.index("train.sh")])
