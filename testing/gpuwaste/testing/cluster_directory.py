"""Writes a cluster's directory: keys, configuration, scripts and device nodes, each with its owner."""

import os
import pwd
import secrets
import shlex
import stat
from pathlib import Path
from string import Template

from gpuwaste.testing.cluster_host import AGENT_USER, BACKUP_HOST, USERS, cgroup_v2, short_name
from gpuwaste.testing.cluster_options import Layout, Node, Variant
from gpuwaste.testing.sim_gpus import FIRST_RENDER

CLUSTER_NAME = Variant().cluster
_TEMPLATES = Path(__file__).parent / "templates"
_REPOSITORY = Path(__file__).parents[3]
_NVIDIA_MAJOR = 195
_DRM_MAJOR = 226
_SLURM_PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"  # Debian's


def write_all(layout: Layout) -> None:
    """Make the whole directory; what is there already keeps its keys and data."""
    _make_folders(layout)
    _make_keys(layout)
    _make_devices(layout)
    values = _values(layout)
    etc = layout.directory / "etc"
    for name in ("slurm.conf", "cgroup.conf", "accounts.cfg", "init.sql"):
        _fill(name, etc / name, values, 0o644)
    if layout.variant.backup:
        _write_backup(layout, values)
    _fill("slurmdbd.conf", etc / "slurmdbd.conf", values, 0o600, "slurm")
    (etc / "gres.conf").write_text(_gres_lines(layout), encoding="utf-8")
    for name, chosen in (("prolog", layout.variant.prolog), ("epilog", layout.variant.epilog), ("task_prolog", ())):
        scripts = {"scripts": shlex.join(_scripts(name) if chosen is None else chosen)}
        _fill(name, layout.directory / "script" / name, values | scripts, 0o755)


def _write_backup(layout: Layout, values: dict[str, str]) -> None:
    """Write what the backup controller reads on its host: slurmctld would end the one whose pid file it shares."""
    etc = layout.directory / "etc"
    for name in ("cgroup.conf", "gres.conf"):
        (etc / "backup" / name).unlink(missing_ok=True)
        (etc / "backup" / name).symlink_to(etc / name)
    _fill("slurm.conf", etc / "backup" / "slurm.conf", values | {"controller": "slurmctld-backup"}, 0o644)
    (etc / "backup-hosts").write_text(f"127.0.0.1 localhost\n{layout.backup_address} {BACKUP_HOST}\n", encoding="utf-8")


def _scripts(name: str) -> list[str]:
    folder = _REPOSITORY / "plugins" / f"{name}.d"
    return sorted(str(path) for path in folder.glob("*") if os.access(path, os.X_OK) and path.is_file())


def _own(path: Path, user: str, mode: int) -> None:
    entry = pwd.getpwnam(user)
    os.chown(path, entry.pw_uid, entry.pw_gid)
    path.chmod(mode)


def _make_folders(layout: Layout) -> None:
    owners: dict[str, tuple[str, int]] = {"": ("root", 0o755)}
    owners |= dict.fromkeys(
        ("etc", "log", "etc/backup", "script", "dev", "munge", "node", "sim", "home"), ("root", 0o755)
    )
    owners |= {"state": ("slurm", 0o700), "run": ("slurm", 0o755), "mysql": ("mysql", 0o755)}
    owners |= {f"home/{user}": (user, 0o700) for user in USERS} | {f"home/{AGENT_USER}": (AGENT_USER, 0o700)}
    owners |= {f"munge/{name}": ("munge", 0o755) for name in ("hub", *layout.nodes)}
    for name in layout.nodes:
        owners |= {f"node/{name}{part}": ("root", 0o755) for part in ("", "/spool", "/jobs")}
        owners |= {f"node/{name}/run": (AGENT_USER, 0o755), f"node/{name}/state": (AGENT_USER, 0o700)}
        owners |= {f"sim/{name}": ("root", 0o755)}
    for folder, (user, mode) in owners.items():
        path = layout.directory / folder
        path.mkdir(exist_ok=True)
        _own(path, user, mode)
    for log in ("slurmctld", "slurmctld-backup", "slurmdbd"):
        path = layout.directory / "log" / f"{log}.log"
        path.touch()
        _own(path, "slurm", 0o644)


def _make_keys(layout: Layout) -> None:
    for path, user, size in (("munge/key", "munge", 128), ("etc/jwt.key", "slurm", 32)):
        key = layout.directory / path
        if not key.exists():
            key.touch(0o600)
            other = layout.variant.accounting
            key.write_bytes((Path(other) / path).read_bytes() if other else secrets.token_bytes(size))
            _own(key, user, 0o400)


def _make_devices(layout: Layout) -> None:
    for minor in {minor for node in layout.nodes.values() for minor in node.minors}:
        path = layout.directory / "dev" / f"nvidia{minor}"
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(_NVIDIA_MAJOR, minor))
            path.chmod(0o666)
    for at in range(layout.variant.amd + layout.variant.intel):
        path = layout.directory / "dev" / "dri" / f"renderD{FIRST_RENDER + at}"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(_DRM_MAJOR, FIRST_RENDER + at))
            path.chmod(0o666)
    for node in layout.nodes.values():
        order = ",".join(map(str, node.positions))
        (node.directory / "minors").write_text(order + "\n", encoding="utf-8")
        (node.directory / "env").touch()


def _others(node: Node) -> list[tuple[str, tuple[int, ...]]]:
    """Return the gres types of GPUs with render nodes that a node has, in the order of the render nodes."""
    return [(kind, gpus) for kind, gpus in (("mi300x", node.amd), ("max1550", node.intel)) if gpus]


def _gres_lines(layout: Layout) -> str:
    lines = []
    for node in layout.nodes.values():
        if node.minors:
            files = f"{layout.directory}/dev/nvidia[{','.join(map(str, node.minors))}]"
            lines.append(f"NodeName={node.name} Name=gpu Type=a100 File={files}")
            first = FIRST_RENDER
            for kind, gpus in _others(node):
                files = f"{layout.directory}/dev/dri/renderD[{first}-{first + len(gpus) - 1}]"
                lines.append(f"NodeName={node.name} Name=gpu Type={kind} File={files}")
                first += len(gpus)
            if layout.variant.shards:
                lines.append(f"NodeName={node.name} Name=shard Count={layout.variant.shards * len(node.minors)}")
    return "\n".join(lines) + "\n"


def _node_lines(layout: Layout) -> str:
    lines = []
    for node in layout.nodes.values():
        gres = f"gpu:a100:{len(node.minors)}" if node.minors else ""
        gres += "".join(f",gpu:{kind}:{len(gpus)}" for kind, gpus in _others(node))
        if gres and layout.variant.shards:
            gres += f",shard:{layout.variant.shards * len(node.minors)}"
        lines.append(
            f"NodeName={node.name} NodeHostname={short_name()} NodeAddr={node.address} Port={node.port} CPUs=16 "
            f"RealMemory=64000{f' Gres={gres}' if gres else ''} State=UNKNOWN"
        )
    return "\n".join(lines)


def _cgroup_lines(variant: Variant) -> str:
    if not variant.cgroup_v2:
        return "CgroupPlugin=cgroup/v1"
    return f"CgroupPlugin=cgroup/v2\nCgroupMountpoint={cgroup_v2()}\nIgnoreSystemd=yes"


def _values(layout: Layout) -> dict[str, str]:
    variant = layout.variant
    gpu_nodes = ",".join(node.name for node in layout.nodes.values() if node.minors)
    extra = [variant.slurm_conf]
    if variant.job_submit:
        extra.append(f"JobSubmitPlugins={variant.job_submit}")
    if variant.plugin_dir:
        extra.append(f"PluginDir={variant.plugin_dir}:{_SLURM_PLUGINS}")
    if variant.backup:
        extra.append("CommunicationParameters=NoCtldInAddrAny")
    if variant.private_data:
        extra.append("PrivateData=jobs")
    if variant.preempt:
        extra += ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"]
        extra.append(f"PartitionName=urgent Nodes={gpu_nodes} PriorityTier=10 MaxTime=1-00:00:00 State=UP")
    return {
        "dir": str(layout.directory),
        "cluster_id": layout.cluster_id,
        "cluster_name": variant.cluster,
        "host": short_name(),
        "controller": "slurmctld",
        "backup_host": f"SlurmctldHost={BACKUP_HOST}({layout.backup_address})" if variant.backup else "",
        "slurmctld_timeout": "10" if variant.backup else "30",
        "slurmctld_port": str(layout.ports[0]),
        "slurmdbd_port": str(layout.accounting_port),
        "proctrack": "proctrack/cgroup" if variant.constrained else "proctrack/linuxproc",
        "job_acct_gather": "jobacct_gather/cgroup" if variant.constrain_devices else "jobacct_gather/linux",
        "task_plugin": "task/cgroup" if variant.constrained else "task/none",
        "constrain_devices": "yes" if variant.constrained else "no",
        "cgroup_lines": _cgroup_lines(variant),
        "gres_types": "gpu,shard" if variant.shards else "gpu",
        "accounting_tres": "gres/gpu,gres/gpu:a100"
        + (",gres/gpu:mi300x" if variant.amd else "")
        + (",gres/gpu:max1550" if variant.intel else "")
        + (",gres/shard" if variant.shards else ""),
        "job_acct_gather_s": str(variant.job_acct_gather_s),
        "cred_expire_s": str(variant.cred_expire_s),
        "node_lines": _node_lines(layout),
        "gpu_nodes": gpu_nodes,
        "cpu_nodes": ",".join(node.name for node in layout.nodes.values() if not node.minors),
        "private_data": "PrivateData=jobs" if variant.private_data else "",
        "extra": "\n".join(extra),
    }


def _fill(template: str, target: Path, values: dict[str, str], mode: int, user: str = "root") -> None:
    text = Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)
    target.write_text(text, encoding="utf-8")
    _own(target, user, mode)
