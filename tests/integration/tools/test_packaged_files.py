"""The files of ours in each package: with the common ones, a program or a command finds all that it imports."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tools.rpm.wheels import ROOT

SPEC = importlib.util.spec_from_file_location("lay_out", ROOT / "packaging" / "rpm" / "lay_out.py")
PROGRAMS = {
    "agent": "import gpuwaste.agent.agent_daemon",
    "hub": "import importlib, pkgutil, gpuwaste.hub.hub_daemon, gpuwaste.act\n"
    "[importlib.import_module(one.name) for one in pkgutil.walk_packages(gpuwaste.act.__path__, 'gpuwaste.act.')]\n"
    "from gpuwaste.core.room_files import room_files\n"
    "from gpuwaste.show.resource import declared\n"
    "rooms = [file.parent.name for file in room_files('*/hub_parts.py')]\n"
    "assert len(rooms) > 5 and len(list(declared())) > 40\n"
    "[importlib.import_module(f'gpuwaste.{room}.hub_parts') for room in rooms]",
    "advisor": "import gpuwaste.advisor.advisor_daemon",
    "actor": "import gpuwaste.actor.actor_daemon",
    "common": "from gpuwaste.cli.resource_commands import resource_commands\n"
    "assert sum(len(command.readings) for command in resource_commands().values()) >= 6",
}


def installed(package: str, folder: Path) -> Path:
    """Link the files of a package and the common ones as they are installed; return the folder above gpuwaste."""
    assert SPEC is not None
    assert SPEC.loader is not None
    lay_out = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(lay_out)
    for owner, name, file in lay_out.our_files(ROOT):
        if owner in {"common", package}:
            place = folder / "gpuwaste" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)
    return folder


@pytest.mark.parametrize("package", PROGRAMS)
def test_a_host_with_one_package_has_what_its_program_imports(package: str, tmp_path: Path) -> None:
    """The files of no other package are needed; nothing is found in the checkout instead."""
    place = installed(package, tmp_path)
    code = f"""
import sys, gpuwaste
gpuwaste.__path__ = [{str(place / "gpuwaste")!r}]
{PROGRAMS[package]}
files = [one.__file__ for name, one in sys.modules.items() if name.startswith("gpuwaste.") and one.__file__]
assert files and all(file.startswith({str(place)!r}) for file in files), files
"""
    done = subprocess.run([sys.executable, "-Bc", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
