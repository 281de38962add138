"""The limits of our units are the kernel's: MemoryMax, MemoryHigh, CPUQuota and TasksMax of each, and they hold."""

import json
import re
from typing import Final

from tools.field.lab import UNITS, Lab, expect

NAME: Final = "MemoryMax, CPUQuota, TasksMax in force"
_UNIT: Final = "gpuwaste-agent"
_PERIOD_US: Final = 100_000
_SPIN_S: Final = 10
_SLACK: Final = 0.15
_FILES: Final = {
    "memory.max": "MemoryMax", "memory.high": "MemoryHigh", "pids.max": "TasksMax", "cpu.max": "CPUQuotaPerSecUSec",
}  # fmt: skip
_JOIN: Final = "import json, os, sys, time\nopen(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()))\n"
_SPIN: Final = f"""{_JOIN}began = time.monotonic()
while time.monotonic() - began < {_SPIN_S}:
    pass
print(json.dumps([time.process_time(), time.monotonic() - began]))"""
_FORK: Final = f"""{_JOIN}children, reason = [], ""
while len(children) < 1000 and not reason:
    try:
        child = os.fork()
    except OSError as error:
        reason = error.strerror
        continue
    if child == 0:
        time.sleep(600)
        os._exit(0)
    children.append(child)
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
print(json.dumps([len(children), reason]))"""


def run(lab: Lab) -> None:
    """Compare each unit's file of the package with the kernel's, then let programs in the agent's cgroup go too far."""
    for unit in UNITS:
        wanted = _wanted(lab, unit)
        group = _group(lab, unit)
        for file in _FILES:
            found = lab.machine.run(f"cat {group}/{file}").strip()
            expect(found == wanted[file], f"{unit}: {file} is {found}, the unit's {_FILES[file]} gives {wanted[file]}")
    quota = int(_wanted(lab, _UNIT)["cpu.max"].split()[0]) / _PERIOD_US
    before = _throttled(lab)
    used, wall = _told(lab, _SPIN)
    expect(_throttled(lab) > before, "the kernel throttled nothing while a program of the agent's cgroup span")
    expect(used / wall <= quota + _SLACK, f"{used:.1f} s of CPU in {wall:.1f} s, with a quota of {quota:.0%}")
    tasks = int(_wanted(lab, _UNIT)["pids.max"])
    started, reason = _told(lab, _FORK)
    expect(started < tasks and bool(reason), f"{started} processes with TasksMax {tasks}: {reason or 'none refused'}")


def _throttled(lab: Lab) -> int:
    return int(lab.machine.run(f"sed -n 's/^nr_throttled //p' {_group(lab, _UNIT)}/cpu.stat"))


def _told(lab: Lab, program: str) -> list[float]:
    lab.machine.write("/root/limit.py", program)
    return list(json.loads(lab.machine.run(f"python3 /root/limit.py {_group(lab, _UNIT)}")))


def _group(lab: Lab, unit: str) -> str:
    return f"/sys/fs/cgroup{lab.unit(unit, 'ControlGroup')}"


def _wanted(lab: Lab, unit: str) -> dict[str, str]:
    """Return what the kernel should have, of the unit's file as the package has it."""
    text = lab.machine.run(f"cat $(systemctl show --value --property=FragmentPath {unit})")
    keys = dict(re.findall(r"^(MemoryMax|MemoryHigh|TasksMax|CPUQuota)=(\S+)$", text, re.MULTILINE))
    quota = int(keys["CPUQuota"].removesuffix("%")) * _PERIOD_US // 100
    sizes = {
        name: str(int(keys[name][:-1]) << {"M": 20, "G": 30}[keys[name][-1]]) for name in ("MemoryMax", "MemoryHigh")
    }
    return {
        "memory.max": sizes["MemoryMax"], "memory.high": sizes["MemoryHigh"], "pids.max": keys["TasksMax"],
        "cpu.max": f"{quota} {_PERIOD_US}",
    }  # fmt: skip
