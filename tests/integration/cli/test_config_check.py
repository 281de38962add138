"""`gpuwaste config check`: what cannot work together, and what the submit plugins would read otherwise."""

import tomllib
from pathlib import Path

import pytest

from gpuwaste.cli.check import Role
from gpuwaste.cli.config_check import problems
from gpuwaste.cli.main import main
from gpuwaste.core.config import config_from_dict, load_config

ROOT = Path(__file__).parents[3]


def found(tmp_path: Path, text: str) -> list[str]:
    """Return the problems of a file that can be read."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text(text, encoding="utf-8")
    return problems(path, load_config(path))


def test_the_example_and_an_absent_file_are_sound(tmp_path: Path) -> None:
    """etc/gpuwaste.toml, and no file at all, have nothing to mend."""
    assert found(tmp_path, (ROOT / "etc" / "gpuwaste.toml").read_text(encoding="utf-8")) == []
    none = tmp_path / "none.toml"
    assert problems(none, load_config(tmp_path / "gpuwaste.toml")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plugin.deadline_us = 9000", "[plugin] deadline_us: the submit plugins take 5000, not 9000"),
        ("plugin = {deadline_us = 9000}", "[plugin] deadline_us: the submit plugins take 5000, not 9000"),
        ("[ plugin ]\ndeadline_us = 9000", "[plugin] deadline_us: the submit plugins take 5000, not 9000"),
        ("[plugin]\ndeadline_us = 0x2328", "line 2: [plugin] deadline_us: expected a whole number"),
        ("[plugin]\ndeadline_us = 50", "line 2: [plugin] deadline_us: number out of range (100 to 10000000)"),
        (
            '[plugin]\nkill_switch = "/etc/\\u0041"',
            'line 2: [plugin] kill_switch: expected a "text" without backslashes',
        ),
        ('[plugin]\nkill_switch = """\n/etc/x"""', "line 2: [plugin] kill_switch: expected a"),
        (
            '[advisor]\n"socket" = "/srv/a.sock"',
            "[advisor] socket: the submit plugins take '/run/gpuwaste/advisor.sock'",
        ),
        (f'[advisor]\nsocket = "/{"s" * 107}"', "line 2: [plugin] socket: text too long"),
        ('[hub]\nlisten = "0.0.0.0:9460"', "[hub] listen 0.0.0.0:9460: port 9460 is [agent]'s as well"),
        ('[hub]\nlisten = "9461"', "[hub] listen '9461': expected ADDRESS:PORT"),
        ('[agent]\nlisten = "localhost:99999"', "[agent] listen 'localhost:99999': expected ADDRESS:PORT"),
        ('[hub]\nlisten = ""', "set one of them"),
        ('[hub]\ntls_cert = "/etc/a.pem"', "[hub] tls_cert is set and tls_key is not"),
        ('[agent]\ntls_key = "/etc/a.key"', "[agent] tls_key is set and tls_cert is not"),
        ('[common]\nhub_url = "admin1:9461"', "[common] hub_url 'admin1:9461': expected http://"),
        ('[common]\ntoken_file = "/t"\nhub_url = "http://admin1:9461"', "would be sent in clear text"),
        ('[hub]\nstate_dir = "hub"', "[hub] state_dir 'hub': not an absolute path"),
        ('[agent]\nmig_minors = "./x"', "[agent] mig_minors './x': not an absolute path"),
        ("[hub]\nlow_below_pct = 90.0", "low_below_pct is above high_above_pct"),
        ("[hub]\nmin_coverage = 80.0", "min_coverage is a share"),
        ("[agent]\ncollectors = []", "collectors is empty"),
        ("[agent]\ninterval_s = 0", "interval_s is 0"),
        ('[hub]\nuser_names_file = "/nonexistent/u.csv"', "[hub] user_names_file: /nonexistent/u.csv: cannot be read"),
        ("[energy]\npue = 0.5", "[energy] pue 0.5: set it to 1 to 10"),
        ('[energy]\nhours_file = "/nonexistent/e.csv"', "[energy] hours_file: /nonexistent/e.csv: cannot be read"),
        ("[plugin]\nbreaker_max_ms = 10", "breaker_max_ms is less than breaker_first_ms"),
        ("[plugin]\nstale_s = 60", "would drop advice that is still valid"),
    ],
)
def test_each_problem_has_a_line(tmp_path: Path, text: str, words: str) -> None:
    """One slip, and a line that names section, key and what to write."""
    assert any(words in problem for problem in found(tmp_path, text + "\n")), found(tmp_path, text + "\n")


def test_the_same_port_at_two_addresses_is_sound(tmp_path: Path) -> None:
    """Two services may share a port on addresses of their own."""
    assert found(tmp_path, '[hub]\nlisten = "10.0.0.1:9460"\n[agent]\nlisten = "127.0.0.1:9460"\n') == []


def test_policies_are_read(tmp_path: Path) -> None:
    """A slip in a policy is a problem of the configuration; an absent directory is none."""
    directory = tmp_path / "policies.d"
    text = f'[advisor]\npolicies_dir = "{directory}"\n'
    assert found(tmp_path, text) == []
    directory.mkdir()
    (directory / "20-warn.toml").write_text("[polcy]\n")
    (problem,) = found(tmp_path, text)
    assert "20-warn.toml: unknown table [polcy]: did you mean 'policy'?" in problem


def test_campaigns_are_read(tmp_path: Path) -> None:
    """A slip in a campaign's file, and a campaign without a key, are problems; an absent directory is none."""
    directory = tmp_path / "campaigns.d"
    text = f'[common]\ncampaigns_dir = "{directory}"\n'
    assert found(tmp_path, text) == []
    directory.mkdir()
    (directory / "spring.toml").write_text(
        'what = ["digest"]\nstart = 2027-05-03\nend = 2027-07-25\nheld_back = 0.5\nreason = "does it help?"\n'
    )
    (problem,) = found(tmp_path, text)
    assert problem.startswith("[common] campaign_key_file is empty: campaigns need a key")
    (directory / "autumn.toml").write_text('waht = ["digest"]\n')
    assert any("autumn.toml" in problem and "'what'" in problem for problem in found(tmp_path, text))


def test_the_command_exits_with_2_where_something_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is one line that begins with the file and its line; a sound file says ok and exits with 0."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text('[hub]\ntls_cert = "a.pem"\n')
    assert main(["config", "check", "--config", str(path)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{path}:2: [hub] tls_cert") for line in lines)
    path.write_text("")
    assert main(["config", "check", "--config", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: ok\n"


def test_a_role_adds_what_its_service_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--role hub` looks at the hub's files though no hub has run here; another role does not."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text('[hub]\nnode_tokens_file = "/none/tokens"\n')
    assert main(["config", "check", "--config", str(path), "--role", "login"]) == 0
    assert main(["config", "check", "--config", str(path), "--role", "hub"]) == 2
    assert "/none/tokens: cannot be read" in capsys.readouterr().out


def test_every_fault_of_every_file_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown sections and keys, wrong types, a drop-in that is no TOML, and what the good keys lead to: in one run."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text(
        '[hub]\nmin_covrage = 0.5\nmin_coverage = "x"\nlisten = "nohost"\n[agent]\ninterval_s = -1\n[nonsens]\nx = 1\n'
    )
    (tmp_path / "gpuwaste.toml.d").mkdir()
    (tmp_path / "gpuwaste.toml.d" / "10-a.toml").write_text("[hub\n")
    (tmp_path / "gpuwaste.toml.d" / "20-b.toml").write_text("[hub]\nstate_dir = 7\n")
    (tmp_path / "gpuwaste.toml.d" / "30-c.toml").write_text("hub = 7\n")
    assert main(["config", "check", "--config", str(path), "--role", "login"]) == 2
    said = capsys.readouterr()
    lines = said.err.splitlines()
    for words in (
        "10-a.toml: invalid TOML", "unknown section [nonsens]", "[agent] interval_s: -1.0 is negative",
        "unknown key 'min_covrage'", "[hub] min_coverage: expected float", "20-b.toml: [hub] state_dir: expected str",
        "30-c.toml: [hub] is not a table",
    ):  # fmt: skip
        assert sum(words in line for line in lines) == 1, words
    assert len(lines) == 7
    assert all(line.startswith("gpuwaste: ") for line in lines)
    assert said.out == f"{path}:4: [hub] listen 'nohost': expected ADDRESS:PORT, such as 127.0.0.1:9460\n"


def test_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    """A drop-in of mode 600 is a fault: each user's commands and the submit plugins read it as well."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text("")
    (tmp_path / "gpuwaste.toml.d").mkdir()
    own = tmp_path / "gpuwaste.toml.d" / "site.toml"
    own.write_text("")
    own.chmod(0o600)
    assert problems(path, load_config(path)) == [
        f"{own}: mode 600: other users and daemons cannot read it: chmod 644 {own}"
    ]
    own.chmod(0o644)
    assert problems(path, load_config(path)) == []


def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    """On the hub's host a name of no group is a fault, one of a group is none."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text('[hub]\nstaff_groups = ["root", "no-such-group"]\n')
    (found,) = [line for line in problems(path, load_config(path), {Role.HUB}) if "staff_groups" in line]
    assert found == ("[hub] staff_groups: no group 'no-such-group' on this host: correct the name, or create the group")
    assert not any("staff_groups" in line for line in problems(path, load_config(path)))


def test_show_is_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `config show` prints, read as a configuration, is the same one; lists, numbers and odd texts too."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text('[hub]\nmin_coverage = 0.5\nstaff_groups = ["a \\"b\\"", "c\\u007f#"]\n[agent]\ninterval_s = 2\n')
    assert main(["config", "show", "--config", str(path)]) == 0
    shown = capsys.readouterr().out
    assert config_from_dict(tomllib.loads(shown), "shown") == load_config(path)
    assert f"min_coverage = 0.5  # set in {path}:2: " in shown


@pytest.mark.parametrize("command", ["policy", "rules"])
def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Named on the command line or in the configuration it is an error of usage; nobody's own one is none."""
    path = tmp_path / "gpuwaste.toml"
    path.write_text('[hub]\nrules_dir = "/none"\n[advisor]\npolicies_dir = "/none"\n')
    for words in (["check", "/none"], ["check", "--config", str(path)]):
        assert main([command, *words]) == 2
        assert capsys.readouterr().err.startswith("gpuwaste: /none: no such file or directory: ")
    path.write_text("")
    usual = Path("/etc/gpuwaste") / {"policy": "policies.d", "rules": "rules.d"}[command]
    if not usual.exists():
        assert main([command, "check", "--config", str(path)]) == 0
