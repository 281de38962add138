"""make rpm: the source RPM and the RPMs in build/rpm, then rpmlint on them.

python -m tools.rpm [--wheels-only | --for-tests] [--python 3.12 --machine aarch64]
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.rpm.build import OUT, SPEC, WHEELS, current, here
from tools.rpm.kept import kept
from tools.rpm.root import make_caches
from tools.rpm.scratch import scratch
from tools.rpm.variants import newer, older, other_plugin
from tools.rpm.wheels import ROOT, Target, collect

PIP: Final = ROOT / "build" / "pip"
_LINT: Final = SPEC.with_name("gpuwaste.rpmlintrc")


def lint(packages: list[Path]) -> int:
    """Run rpmlint with our filters; return its exit code, 1 where it has a warning too."""
    argv = [
        "rpmlint",
        "--config",
        str(_LINT.with_suffix(".toml")),
        "--rpmlintrc",
        str(_LINT),
        str(SPEC),
        *map(str, packages),
    ]
    with scratch() as place:
        environment = {**os.environ, "TMPDIR": str(place)}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode or int(" 0 warnings" not in done.stdout)


def fetch_for_tests() -> None:
    """Build other versions, and fetch what tests need of the network: Debian roots, and what the README's pip installs.

    Raises GpuwasteError.
    """
    for build in (older, newer, other_plugin):
        build()
    make_caches()
    wanted = hashlib.sha256(here().name.encode() + (ROOT / "pyproject.toml").read_bytes())
    kept(PIP, wanted.hexdigest(), _pip_download)


def _pip_download(folder: Path) -> list[Path]:
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), ".[hub]", "hatchling"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise GpuwasteError(f"pip download into {folder}: {done.stderr.strip()[-2000:]}")
    return sorted(folder.iterdir())


def main() -> int:
    """Build and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels-only", action="store_true", help="download the wheels and stop")
    parser.add_argument("--for-tests", action="store_true", help="also fetch what tests need, no rpmlint")
    parser.add_argument("--python", default=here().python, help="version of the interpreter, for --wheels-only")
    parser.add_argument("--machine", default=here().machine, help="x86_64 or aarch64, for --wheels-only")
    options = parser.parse_args()
    try:
        if options.wheels_only:
            sys.stdout.write(f"{collect(Target(options.python, options.machine), WHEELS)}\n")
            return 0
        packages = current()
        if options.for_tests:
            fetch_for_tests()
            return 0
    except GpuwasteError as error:
        sys.stderr.write(f"make rpm: {error}\n")
        return 1
    for package in packages:
        sys.stdout.write(f"{package.stat().st_size / 1e6:8.1f} MB  {package.relative_to(OUT)}\n")
    return lint(packages)


if __name__ == "__main__":
    sys.exit(main())
