"""The command: what it asks the hub, what it prints, its exit codes, and that it is never loud."""

import json
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.show.documents import one_job, report, top

from gpuwaste.cli.main import command_names, load_command, main
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

GPUWASTE = Path(sys.executable).with_name("gpuwaste")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    """Serve a report, a job and top."""
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/report": report(), "/v1/jobs/7": one_job(), "/v1/top": top()}
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Return the option that names the hub's configuration."""
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def test_every_command_has_its_three_parts() -> None:
    """Each file and folder of cli/commands is a command with HELP, arguments and run, and a docstring for --help."""
    assert {"report", "job", "now", "doctor", "agent", "hub", "config", "model"} <= set(command_names())
    for name in command_names():
        command = load_command(name)
        assert command.HELP
        assert command.__doc__
        assert callable(command.arguments)
        assert callable(command.run)


def test_report_asks_for_the_caller_himself(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --user the report is the caller's own, and the hub says of which days, with rows for a screen."""
    assert main(["report", *config]) == 0
    path, asked = hub.asked[-1]
    assert path == "/v1/report"
    assert asked["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert asked.keys() == {"user", "limit"}
    assert "resnet50" in capsys.readouterr().out


def test_a_report_is_as_wide_as_the_terminal(
    hub: HubDouble, config: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COLUMNS sets the width, and text is at most 100 wide; where the output is no terminal it has 80."""
    assert hub
    for columns, width in (("40", 40), ("120", 100), ("0", 80), ("", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["report", *config]) == 0
        assert capsys.readouterr().out.splitlines()[0] == "=" * width


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["-u", "bob"], {"user": "bob"}),
        (["-A", "physics"], {"account": "physics"}),
        (["--allusers"], {"cluster": "1"}),
        (["-a", "-M", "gw"], {"cluster": "gw"}),
        (["-M", "gw"], {"cluster": "gw"}),
        (["-u", "bob", "-M", "gw,east"], {"user": "bob", "cluster": "gw,east"}),
        (["-A", "physics", "-M", "all"], {"account": "physics", "cluster": "all"}),
        (["-M", "all"], {"cluster": "all"}),
    ],
)
def test_report_asks_for_whom_it_is_told(
    hub: HubDouble, config: list[str], words: list[str], wanted: dict[str, str]
) -> None:
    """The scope is passed on as it is; machine formats ask for every row."""
    assert main(["report", "--csv", *words, *config]) == 0
    asked = hub.asked[-1][1]
    assert wanted.items() <= asked.items()
    assert "limit" not in asked


def test_each_format_prints_the_document(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """--json is the document, --parsable and --csv have a header unless -n."""
    assert main(["report", "--json", *config]) == 0
    assert json.loads(capsys.readouterr().out) == hub.answers["/v1/report"]
    assert main(["job", "7", "--parsable", *config]) == 0
    assert capsys.readouterr().out.startswith("cluster|jobid|")
    assert main(["now", "--hours", "1", "--csv", "-n", *config]) == 0
    assert capsys.readouterr().out.startswith("gw,70,")


@pytest.mark.parametrize(("part", "first"), [("users", "user,accounts,jobs,"), ("days", "day,jobs,gpu_s,")])
def test_a_report_s_other_tables(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str], part: str, first: str
) -> None:
    """--table prints users or days, all of them, with kWh and cost; jobs are asked for as for a screen, not all."""
    assert main(["report", "--allusers", "--csv", "--table", part, *config]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith(first)
    assert {"kwh", "cost", "currency", "cpu_energy_j"} < set(header.split(","))
    assert len(rows) == len(hub.answers["/v1/report"][part]) > 0
    assert "limit" in hub.asked[-1][1]


def test_a_table_that_is_not_whole_says_so(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A report for machines from which the hub left runs out has their number on stderr, and nothing else there."""
    for left_out in (0, 7):
        hub.answers["/v1/report"] = {**hub.answers["/v1/report"], "jobs_left_out": left_out}
        main(["report", "--csv", *config])
        said = capsys.readouterr().err
        assert said == (
            f"gpuwaste: {left_out} jobs with less waste are not in the table: ask for a shorter time\n"
            if left_out
            else ""
        )


def test_top_looks_back_to_a_time(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With -S, top asks from that time of the caller's on; a time that is none, or --hours beside it, is usage."""
    assert main(["now", "-S", "2026-05-06T07:08:09", *config]) == 0
    asked = datetime(2026, 5, 6, 7, 8, 9)  # noqa: DTZ001 the caller's own zone is meant
    assert hub.asked[-1] == ("/v1/top", {"since": str(int(asked.timestamp()))})
    assert main(["now", "-S", "never", *config]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["now", "-S", "now", "--hours", "2", *config])


def test_exit_codes(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """0 ok, 1 error, 2 usage, 3 no data, 4 over the threshold; every failure is one line on stderr."""
    assert main(["job", "7", "--fail-above", "75", *config]) == 0
    assert main(["job", "7", "--fail-above", "74", *config]) == 4
    hub.answers["/v1/report"] |= {"job_count": 0, "jobs": []}
    capsys.readouterr()
    for words, code in (
        (["job", "8", *config], 3),
        (["report", *config], 3),
        (["job", "x", *config], 2),
        (["report", "-S", "never", *config], 2),
        (["report", "-S", "now", "-E", "now-1days", *config], 2),
        (["now", "--hours", "0", *config], 2),
        (["report", "--fail-above", "101", *config], 2),
        (["report", "--config", "/nonexistent.toml"], 2),
    ):
        assert main(words) == code, words
        said = capsys.readouterr()
        assert said.err.startswith("gpuwaste: ")
        assert said.err.count("\n") == 1
        assert said.out == ""


@pytest.mark.parametrize(
    "words", [["nonsense"], ["--what"], ["report", "--what"], ["report", "--json", "--csv"], ["job"]]
)
def test_wrong_usage_is_one_line_and_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What argparse refuses is one line that names the help."""
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("gpuwaste: ")
    assert said.count("\n") == 1
    assert "--help" in said


@pytest.mark.sockets
def test_no_hub_is_one_line(tmp_path: Path, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A hub that is not there is named, with code 1 and no traceback."""
    (tmp_path / "gpuwaste.toml").write_text(f'[common]\nhub_url = "unix:{tmp_path}/none.sock"\n')
    assert main(["report", *config]) == 1
    said = capsys.readouterr().err
    assert "none.sock" in said
    assert said.count("\n") == 1


def test_an_answer_of_another_form_is_one_line(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The field that is missing or of another type is named; a field that is not known is ignored."""
    known = hub.answers["/v1/jobs/7"]
    hub.answers["/v1/jobs/7"] = {**known, "new": [1]}
    assert main(["job", "7", *config]) == 0
    capsys.readouterr()
    for run, words in (({"totals": {}}, "runs[0]: object missing required field `cluster`"), (7, "runs[0]: expected")):
        hub.answers["/v1/jobs/7"] = {**known, "runs": [run]}
        assert main(["job", "7", *config]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert "another version" in said
        assert said.count("\n") == 1


def test_a_defect_is_one_line_too(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A document that no renderer can print gives one line and code 1."""
    hub.answers["/v1/jobs/7"]["runs"][0]["start"] = 1 << 60
    assert main(["job", "7", *config]) == 1
    said = capsys.readouterr().err
    assert "bug in gpuwaste" in said
    assert said.count("\n") == 1


def test_a_daemon_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A host without a program's modules says so in one line."""
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.errors import GpuwasteError

    with pytest.raises(GpuwasteError, match="nonesuch"):
        load_program("gpuwaste.nonesuch")
    assert capsys.readouterr().err == ""


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    """A library, or a part of gpuwaste, that this host lacks is one line that says what to install, and no bug."""
    for module, words in (
        ("duckdb", "the Python package duckdb cannot be loaded: "),
        ("gpuwaste.hub", "on this host: install gpuwaste-hub"),
        ("gpuwaste.jobs.importers", "on this host: the installation is incomplete"),
        ("numpy", "install gpuwaste with its extra [sim]"),
    ):
        command = "simulate run --generate lublin:jobs=5" if module == "numpy" else "history import --sacct a --into b"
        program = f"import sys; sys.modules[{module!r}] = None; from gpuwaste.cli.main import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", program, *command.split()],
            capture_output=True, text=True, check=False, timeout=patient(60), cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 1
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert "bug" not in done.stderr


@pytest.mark.long
def test_a_closed_pipe_is_quiet(hub: HubDouble, tmp_path: Path) -> None:
    """A reader that stops reading ends the command without a word."""
    hub.answers["/v1/report"]["jobs"] *= 5000
    command = f"{GPUWASTE} report --parsable --config {tmp_path}/gpuwaste.toml | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=patient(60))
    assert done.stderr == ""
    assert done.stdout.startswith("cluster|")


def test_an_interrupt_is_one_line(hub: HubDouble, tmp_path: Path) -> None:
    """Ctrl-C while the hub is slow ends the command with 130 and one line."""
    hub.go_on.clear()
    process = subprocess.Popen(
        [GPUWASTE, "now", "--hours", "1", "--config", tmp_path / "gpuwaste.toml"], stderr=subprocess.PIPE
    )
    until = time.monotonic() + 30
    while not hub.asked and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=patient(30))
    hub.go_on.set()
    assert (process.returncode, said) == (130, b"gpuwaste: interrupted\n")


def test_report_does_not_import_the_store(hub: HubDouble, tmp_path: Path) -> None:
    """The report's process loads neither DuckDB nor another command: it has to start fast."""
    assert hub.answers
    program = (
        "import sys; from gpuwaste.cli.main import main\n"
        f"code = main(['report', '--config', '{tmp_path}/gpuwaste.toml'])\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in {'duckdb', 'fastapi', 'numpy', 'psutil'}]\n"
        "bad += [m for m in sys.modules if m.startswith('gpuwaste.cli.commands.') and not m.endswith('report')]\n"
        "sys.exit(str(bad) if bad or code else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=patient(60)
    )
    assert done.returncode == 0, done.stderr


def test_no_colour_without_a_terminal(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Output into a file or a pipe has no escape sequences."""
    assert hub.answers
    assert main(["job", "7", *config]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_job_waits_for_the_end_to_be_reported(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`job --wait` asks until the run has ended and its GPUs were told to their end, and prints that."""
    ended = one_job()
    running = json.loads(json.dumps(ended))
    running["runs"][0]["end"] = None
    hub.answers["/v1/jobs/7"] = running
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["job", "7", "--wait", "60s", "--json", *config])))
    thread.start()
    wait_until(lambda: len(hub.asked) > 1, 30, "a second question")
    hub.answers["/v1/jobs/7"] = ended
    thread.join(30)
    assert codes == [0]
    assert json.loads(capsys.readouterr().out) == ended
    del hub.answers["/v1/jobs/7"]
    assert main(["job", "7", "--wait", "1s", *config]) == 3
    assert main(["job", "7", "--wait", "soon", *config]) == 2


def test_names_print_in_any_locale(hub: HubDouble, tmp_path: Path) -> None:
    """In the C locale a name in another script is escaped instead of failing."""
    hub.answers["/v1/report"]["jobs"][0]["name"] = "漢字"
    words = [str(GPUWASTE), "report", "--config", str(tmp_path / "gpuwaste.toml")]
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PATH": os.environ["PATH"]}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=patient(60))
    assert done.returncode == 0
    assert r"\u6f22\u5b57" in done.stdout


def test_config_check_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`config show` names file and line of what the file sets; `config check` a wrong key and its nearest neighbour."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text("[hub]\nmin_coverage = 0.5\n")
    assert main(["config", "check", "--config", str(path)]) == 0
    assert main(["config", "show", "--config", str(path)]) == 0
    assert f"min_coverage = 0.5  # set in {path}:2: " in capsys.readouterr().out
    path.write_text("[hub]\nmin_covrage = 0.5\n")
    assert main(["config", "check", "--config", str(path)]) == 2
    assert "min_coverage" in capsys.readouterr().err


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpuwaste --version` prints one line and exits with 0."""
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"gpuwaste {version('gpuwaste')}\n"
