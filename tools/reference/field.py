"""field.md: what the namespaces and the virtual machine of `make field` can show, and the last run's results."""

from typing import Final

from tools.field.vm.checks import ORDER, checks_named
from tools.field.vm.record import read
from tools.matrix.table import Result
from tools.reference.markdown import code, document, table

_INTRO: Final = """
`make field` runs our packages in Linux namespaces, `make field VM=1` in a virtual machine
([how to](../how-to/field.md)). Both have Debian 13, systemd 257 as process 1, Slurm 24.11, and the commands of the
install page.
"""
_HEADER: Final = ("what", "namespaces", "virtual machine")
_SHOWN: Final = (
    ("`MemoryMax`, `MemoryHigh`, `CPUQuota`, `TasksMax`, `AllowedCPUs` of units", "no: no effect", "yes"),
    ("cores and memory of jobs (`ConstrainCores`, `ConstrainRAMSpace`), a job out of memory", "no: not set", "yes"),
    ("`jobacct_gather/cgroup`", "no: `jobacct_gather/linux`", "yes"),
    ("device files of jobs (`ConstrainDevices`) and units (`DeviceAllow`)", "yes", "set; no check"),
    ("sandboxing of units (`ProtectSystem`, `SystemCallFilter`, ...)", "yes", "yes"),
    ("the list of GPUs, attribution of jobs", "yes; v1 is hidden from Slurm where the host has it", "yes"),
    ("output of running jobs", "yes", "yes, with a plain `slurmd -G` as the control"),
    ("kill -9, watchdog, broken configuration, restarts of Slurm", "yes", "only an agent that is killed"),
    ("upgrade, removal, purge", "yes", "no check"),
    ("nothing is sent elsewhere", "yes", "no check"),
    ("a restart of the machine", "yes, without a restart of the kernel", "no check"),
    ("times: deadlines, overhead", "as on the host", "no: 7 to 14 times slower, all limits of time are longer"),
    ("NVIDIA's driver and library", "no: simulated", "no: simulated"),
    ("several hosts, Enterprise Linux, Ubuntu, SELinux", "no", "no"),
)
_MEASURED: Final = """
The last recorded result of each check, on {system}. The machine is slow: seconds say how
long a check takes, nothing of our programs. `make field VM=1` writes the results, `make docs` this page.
"""


def page() -> str:
    """Return the page: what each can show, then what the virtual machine gave last."""
    system, results = read()
    names = [check.name for check in checks_named()]
    found = {result.check: result for result in results}
    started = [result.check for result in results if result.check not in names]
    files = dict(zip(names, ORDER, strict=True))
    rows = [(code(files.get(name, "")), name, *_cells(found.get(name))) for name in (*started, *names)]
    return document(
        "What the field shows",
        _INTRO,
        table(_HEADER, _SHOWN),
        "## The virtual machine",
        _MEASURED.format(system=system),
        table(("check", "what", "result", "seconds"), rows),
    )


def _cells(result: Result | None) -> tuple[str, str]:
    if result is None:
        return ("not run", "")
    return (f"failed: {result.reason[:200]}" if result.reason else "ok", f"{result.seconds:.0f}")
