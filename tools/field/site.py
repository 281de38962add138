"""A Slurm site on one machine, as a sysadmin makes it: users, munge, MariaDB, Slurm's daemons, four GPUs.

What a machine without controllers of cgroups cannot have is not asked of Slurm: cores and memory of jobs are then not
constrained, and their use is gathered without cgroups. Devices are constrained on both.
"""

import tempfile
from pathlib import Path
from typing import Final

from gpuwaste.testing.simnvml import SimNode, make_gpus
from tools.field.base import NAME, AnyMachine
from tools.field.boot import GPUS

SIM: Final = "/var/lib/gpusim"
USERS: Final = {"alice": 3001, "bob": 3002, "carol": 3003}
STAFF: Final = ("hpcstaff", "carol")
"""A group of the staff and who is in it, as the install page names them."""
_PRELOAD: Final = Path(__file__).with_name("preload") / "unified.c"
_LIBRARY: Final = "/usr/local/lib/libunified.so"
_PASSWORD: Final = "field"  # noqa: S105 the database of a machine that nobody reaches
SLURM_CONF: Final = f"""ClusterName=field
SlurmctldHost={NAME}
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity
JobAcctGatherType=jobacct_gather/%(gather)s
JobAcctGatherFrequency=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=%(lost_s)d
MessageTimeout=%(message_s)d
SchedulerParameters=sched_interval=5
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStorageTRES=gres/gpu
NodeName={NAME} CPUs=%(cpus)d RealMemory=3000 Gres=gpu:4 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=1:00:00 DefMemPerCPU=100 State=UP OverSubscribe=FORCE:4
"""
_GRES_CONF: Final = "Name=gpu File=/dev/nvidia[0-3]\n"
_CGROUP_CONF: Final = "CgroupPlugin=cgroup/v2\nConstrainDevices=yes\nConstrainCores={0}\nConstrainRAMSpace={0}\n"
_SLURMDBD_CONF: Final = f"""AuthType=auth/munge
DbdHost=localhost
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass={_PASSWORD}
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
_MARIADB_CONF: Final = """[mysqld]
innodb_buffer_pool_size=64M
innodb_log_file_size=32M
innodb_lock_wait_timeout=900
"""
DATABASE: Final = f"""create database slurm_acct_db;
create user slurm@localhost identified by '{_PASSWORD}';
grant all on slurm_acct_db.* to slurm@localhost;
"""
DAEMONS: Final = ("munge", "mariadb", "slurmdbd", "slurmctld", "slurmd")
"""Units, in the order in which a site starts them."""


def furnish(machine: AnyMachine, native: Path) -> None:
    """Give a started machine what is no package's: users, the simulated driver, and the site's files."""
    if not machine.complete:
        machine.write("/root/unified.c", _PRELOAD.read_text(encoding="utf-8"))
        machine.run(f"gcc -O2 -shared -fPIC -o {_LIBRARY} /root/unified.c && echo {_LIBRARY} >/etc/ld.so.preload")
    for name, target in (("libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu"), ("gpuwaste-load", "/usr/local/bin")):
        machine.put(native / name, f"{target}/{name}")
    machine.run("ldconfig")
    with tempfile.TemporaryDirectory(prefix="gwsim") as folder:
        node = SimNode.create(Path(folder, "node"), make_gpus(list(GPUS)))
        machine.put(node.directory, SIM)
    group, member = STAFF
    lines = [f"useradd --create-home --uid {uid} --shell /bin/bash {user}" for user, uid in USERS.items()]
    machine.run("\n".join([*lines, f"groupadd {group}", f"usermod -aG {group} {member}"]))
    files = {
        "slurm/slurm.conf": SLURM_CONF % words(machine),
        "slurm/gres.conf": _GRES_CONF,
        "slurm/cgroup.conf": _CGROUP_CONF.format("yes" if machine.complete else "no"),
        "slurm/slurmdbd.conf": _SLURMDBD_CONF,
        "mysql/mariadb.conf.d/90-field.cnf": _MARIADB_CONF,
    }
    for name, text in files.items():
        machine.write(f"/etc/{name}", text, 0o600 if name.endswith("slurmdbd.conf") else 0o644)
    machine.run(
        "chown slurm:slurm /etc/slurm/slurmdbd.conf\n"
        "install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld /var/log/slurm\n"
        "install -d /var/lib/slurm/slurmd"
    )


def words(machine: AnyMachine) -> dict[str, str | float]:
    """Return what SLURM_CONF leaves open."""
    gather = "cgroup" if machine.complete else "linux"
    return {
        "cpus": machine.cpus,
        "gather": gather,
        "lost_s": 60 * machine.pace,
        "message_s": min(10 * machine.pace, 90),
    }


def start(machine: AnyMachine) -> None:
    """Start the site's daemons for now and for every start of the machine; return when its node is idle."""
    machine.run("[ -e /etc/munge/munge.key ] || mungekey -c; chown munge:munge /etc/munge/munge.key")
    machine.run("systemctl enable --now munge mariadb 2>&1")
    machine.run(f"mariadb <<'SQL'\n{DATABASE}SQL")
    machine.run("systemctl enable --now slurmdbd 2>&1")
    machine.wait("timeout 5 sacctmgr -n show cluster", 60, "slurmdbd to answer")
    users = "\n".join(f"sacctmgr -i add user {user} account=science" for user in USERS)
    machine.run(f"sacctmgr -i add cluster field\nsacctmgr -i add account science\n{users}")
    machine.run("systemctl enable --now slurmctld slurmd 2>&1")
    idle(machine)


def idle(machine: AnyMachine) -> None:
    """Wait until the node takes jobs and has none. Raises GpuwasteError."""
    machine.wait("sinfo -h -o '%T %E'", 90, "the node to be idle", wanted="idle")
