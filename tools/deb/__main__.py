"""make deb: Debian packages of the RPMs of this tree in build/deb, then lintian on them: python -m tools.deb."""

import os
import subprocess
import sys
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb.build import binary_rpms, convert, current
from tools.rpm.scratch import scratch

SITE: Final = "/usr/lib/gpuwaste/python"


def lint() -> int:
    """Run lintian on the packages of this tree; return its exit code: 2 at what no override explains.

    Files below our site directory are left out: wheels are shipped as they were locked, and reading them takes minutes.
    What is then empty is not told.
    """
    with scratch() as place:
        packages = convert(binary_rpms(), place / "packages", without=SITE, level=1)
        argv = ["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"]
        argv += ["--suppress-tags", "empty-binary-package"]
        environment = {**os.environ, "TMPDIR": str(place)}
        return subprocess.run([*argv, *map(str, packages)], check=False, env=environment).returncode


def main() -> int:
    """Build and check."""
    try:
        packages = current()
    except GpuwasteError as error:
        sys.stderr.write(f"make deb: {error}\n")
        return 1
    for package in packages:
        sys.stdout.write(f"{package.stat().st_size / 1e6:8.1f} MB  {package.name}\n")
    sys.stdout.flush()
    return lint()


if __name__ == "__main__":
    sys.exit(main())
