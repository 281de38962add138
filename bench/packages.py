"""Figure: sizes of the RPMs, and what each kind of host downloads and holds.

Builds the packages where they are not there. Prints a table, then one line of JSON.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.rpm.build import current

TARGET_MB: Final = 40.0
COMMON: Final = ("gpuwaste", "gpuwaste-runtime")
MODELS: Final = ("gpuwaste-models", "gpuwaste-runtime-onnx")
HOSTS: Final = {
    "login": COMMON,
    "agent": (*COMMON, "gpuwaste-agent"),
    "hub": (*COMMON, *MODELS, "gpuwaste-hub"),
    "hub with a lake": (*COMMON, *MODELS, "gpuwaste-hub", "gpuwaste-lake"),
    "advisor": (*COMMON, *MODELS, "gpuwaste-advisor", "gpuwaste-slurm-plugin"),
}


def sizes(packages: list[Path]) -> dict[str, tuple[float, float]]:
    """Return MB to download and MB on the disk of each package, the source's under "source"."""
    found = {}
    for package in packages:
        query = ["rpm", "-qp", "--nosignature", "--qf", "%{LONGSIZE}", str(package)]
        disk = int(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
        name = "source" if package.name.endswith(".src.rpm") else re.split(r"-\d", package.name)[0]
        found[name] = (package.stat().st_size / 1e6, disk / 1e6)
    return found


def main() -> int:
    """Print what the packages take."""
    found = sizes(current())
    print(f"{'package':<24}{'download MB':>12}{'disk MB':>10}")
    for name, (download, disk) in sorted(found.items()):
        print(f"{name:<24}{download:12.2f}{disk:10.1f}")
    print(f"\n{'host':<24}{'download MB':>12}{'disk MB':>10}")
    hosts = {host: tuple(sum(found[name][i] for name in names) for i in (0, 1)) for host, names in HOSTS.items()}
    for host, (download, disk) in hosts.items():
        print(f"{host:<24}{download:12.2f}{disk:10.1f}")
    agent = hosts["agent"][0]
    print(f"\nagent with its runtime: {agent:.1f} MB, target {TARGET_MB:g} MB")
    packages = {name: {"download_mb": round(a, 2), "disk_mb": round(b, 1)} for name, (a, b) in sorted(found.items())}
    print(json.dumps({"bench": "packages", "agent_mb": round(agent, 2), "target_mb": TARGET_MB, "packages": packages}))
    return int(agent > TARGET_MB)


if __name__ == "__main__":
    sys.exit(main())
