"""What `make test` and `make test-all` do when a part breaks off: tools/run-tests with stand-ins for what it calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

ROOT = Path(__file__).parents[3]
_RESULTS = '<testsuites><testsuite tests="3" skipped="1" failures="0" errors="0"/></testsuites>'
_PYTEST = f"""#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" != --junitxml ] || out=$2; shift; done
[ -z "${{DIES:-}}" ] || [ "${{out##*/}}" != "$DIES" ] || kill -KILL $$
echo '{_RESULTS}' >"$out"
"""
_ODD_HOST = f"""#!/bin/bash
for lane in de tr; do
  echo '{_RESULTS}' >"$3/$lane.xml"
  echo "$lane 0" >>"$3/ended"
done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with what tools/run-tests calls."""
    tools, programs = tmp_path / "tools", tmp_path / ".venv" / "bin"
    tools.mkdir()
    programs.mkdir(parents=True)
    for name in ("run-tests", "parts.py", "once_more.py", "lift.py", "__init__.py"):
        shutil.copy(ROOT / "tools" / name, tools)
    scripts = {
        programs / "pytest": _PYTEST,
        programs / "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        tools / "odd-host": _ODD_HOST,
        tools / "compiled": "#!/bin/sh\n",
        tools / "framework-venvs": "#!/bin/sh\necho /none\n",
    }
    for file, text in scripts.items():
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path


def ran(checkout: Path, command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run tools/run-tests there for a command of make's."""
    return subprocess.run(
        [checkout / "tools" / "run-tests", command],
        env={**os.environ, **env},
        cwd="/",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=patient(60),
    )


@pytest.mark.parametrize(("command", "parts"), [("test", 3), ("test-all", 4)])
def test_where_every_part_ran_it_passes(checkout: Path, command: str, parts: int) -> None:
    """All parts are in the table at the end, and the exit code is 0."""
    done = ran(checkout, command)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("  passed\n") == parts, done.stdout  # the table's rows
    assert "every part passed" in done.stdout


@pytest.mark.parametrize("command", ["test", "test-all"])
@pytest.mark.parametrize("status", [0, 1, 3, 137])
def test_an_odd_host_that_ends_early_without_a_line_is_a_failure(checkout: Path, command: str, status: int) -> None:
    """Neither the half that it did not run nor its exit code is lost, whatever that code is."""
    (checkout / "tools" / "odd-host").write_text(f'#!/bin/bash\necho "de 0" >>"$3/ended"\nexit {status}\n')
    done = ran(checkout, command)
    assert done.returncode == 1
    assert "odd host, second half" in done.stdout
    assert "nothing says how it ended" in done.stdout
    assert "NOT every part passed" in done.stdout


@pytest.mark.parametrize(
    ("command", "part", "others"), [("test", "clusters", 2), ("test-all", "demo", 3), ("test-all", "clusters", 3)]
)
def test_a_pytest_that_is_killed_is_a_failure(checkout: Path, command: str, part: str, others: int) -> None:
    """The row of the part names the signal; the other parts still run."""
    done = ran(checkout, command, DIES=f"{part}.xml")
    assert done.returncode == 1
    assert "KILLED by SIGKILL" in done.stdout
    assert done.stdout.count("  passed\n") == others, done.stdout


def test_another_word_is_refused(checkout: Path) -> None:
    """Nothing runs, and the usage is printed."""
    done = ran(checkout, "unit")
    assert (done.returncode, done.stdout) == (2, "usage: tools/run-tests test|test-all\n")
