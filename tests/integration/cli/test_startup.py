"""What the command imports before it does something: what a command does not use is not loaded."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import running_hub
from tests.unit.show.documents import report

from gpuwaste.testing.patience import patient

HEAVY = {"duckdb", "numpy", "onnxruntime", "fastapi", "tabulate", "psutil", "email", "ssl"}
NOT_FOR_HELP = HEAVY | {"json", "dataclasses", "pathlib", "shutil", "tempfile", "tomllib", "inspect", "datetime"}
NOT_FOR_REPORT = HEAVY - {"email", "ssl"} | {
    "difflib",
    "logging",
    "shutil",
    "tempfile",
    "tarfile",
}  # HTTP is the library's
MODULES_OF_REPORT = 190  # CPython 3.11 has 184
PROGRAM = """
import sys
sys.argv = ["gpuwaste", *sys.argv[1:]]
from gpuwaste.cli.main import main
try:
    code = main()
except SystemExit as end:
    code = end.code
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def modules_of(*words: str) -> set[str]:
    """Return the modules that the interpreter holds when the command has ended with 0."""
    argv = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=patient(60))
    code, *names = done.stderr.split()
    assert code == "0", done.stderr
    return set(names)


def bare() -> set[str]:
    """Return what an interpreter of this installation holds before it runs anything."""
    argv = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    return set(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=patient(60)).stdout.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["report", "--help"], ["model", "train", "--help"]])
def test_help_loads_no_library(words: list[str]) -> None:
    """--help loads neither a package of others nor the parts of the standard library that cost most."""
    version = (
        {"email", "json", "pathlib", "shutil", "tempfile", "inspect", "datetime"} if words == ["--version"] else set()
    )
    assert not (modules_of(*words) - bare()) & (NOT_FOR_HELP - version)


def test_help_loads_no_other_room() -> None:
    """--help needs the command line's own modules and the table of errors."""
    rooms = {name.split(".")[1] for name in modules_of("--help") if name.startswith("gpuwaste.")}
    assert rooms == {"cli", "core"}


def test_a_report_loads_what_it_prints_with(tmp_path: Path) -> None:
    """A report over the hub's socket loads no store, no other command and no TLS."""
    with running_hub(tmp_path) as hub:
        hub.answers = {"/v1/report": report()}
        found = modules_of("report", "--config", str(tmp_path / "gpuwaste.toml")) - bare()
    assert not found & NOT_FOR_REPORT
    assert len(found) <= MODULES_OF_REPORT
    assert {name for name in found if name.startswith(("gpuwaste.ledger.", "gpuwaste.show."))} == {
        *("gpuwaste.ledger.reports", "gpuwaste.ledger.reports.report_types", "gpuwaste.ledger.reports.report_text"),
        *("gpuwaste.ledger.reports.report_tables", "gpuwaste.ledger.reports.job_columns"),
        *("gpuwaste.ledger.energy", "gpuwaste.ledger.energy.energy_types", "gpuwaste.ledger.energy.energy_text"),
        *("gpuwaste.ledger.energy.energy_text", "gpuwaste.ledger.fix_words"),
        *("gpuwaste.show.terminal_cells", "gpuwaste.show.layout"),
    }
    assert {name for name in found if name.startswith("gpuwaste.cli.commands.")} == {"gpuwaste.cli.commands.report"}


def test_munge_is_a_library_and_no_process() -> None:
    """A credential is made without the modules that start processes."""
    program = "import sys; import gpuwaste.net.munge_credentials; print(*sys.modules)"
    argv = [sys.executable, "-c", program]
    found = (
        set(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=patient(60)).stdout.split())
        - bare()
    )
    assert "ctypes" in found
    assert not found & {"subprocess", "shutil", "tempfile"}


def test_a_hub_loads_no_parser_of_rules_and_no_client_that_it_may_never_use() -> None:
    """A site without rules starts its hub without CEL, one with Slurm's commands without what asks slurmrestd."""
    argv = [sys.executable, "-c", "import sys; import gpuwaste.hub.hub_daemon; print(*sys.modules)"]
    found = (
        set(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=patient(60)).stdout.split())
        - bare()
    )
    assert {"fastapi", "duckdb"} <= found
    assert not found & {"celpy", "lark"}


def test_what_a_daemon_imports_is_left_to_no_collection() -> None:
    """The modules of a daemon are looked at by no collection of garbage; what comes later is."""
    program = (
        "import gc, sys; from gpuwaste.cli.programs import load_daemon; load_daemon(sys.argv[1]);"
        "print(gc.get_freeze_count() > 1000, len(gc.get_objects()) < 1000, gc.isenabled())"
    )
    argv = [sys.executable, "-c", program, "gpuwaste.agent.agent_daemon"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=patient(60))
    assert done.stdout.split() == ["True"] * 3
