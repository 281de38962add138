"""Drop-ins: the files of gpuwaste.toml.d are read over gpuwaste.toml, and each value has its place."""

import os
from pathlib import Path

import pytest

from gpuwaste.cli.main import main
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.config_files import MOST
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.reload import Reloader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a configuration file with two keys, whose folder of drop-ins is empty."""
    (tmp_path / "gpuwaste.toml.d").mkdir()
    file = tmp_path / "gpuwaste.toml"
    file.write_text('[common]\nhub_url = "http://one:1"\n\n[hub]\nmin_coverage = 0.5\n')
    return file


def drop_in(path: Path, name: str, text: str) -> Path:
    """Write a drop-in and return its path."""
    file = path.with_name(f"{path.name}.d") / name
    file.write_text(text)
    return file


def test_of_a_key_in_several_files_the_last_by_name_counts(path: Path) -> None:
    """Tables merge key by key; hidden files, backups and what dpkg and rpm leave behind are not read."""
    drop_in(path, "20-b.toml", "[hub]\nverdict_days = 20\n")
    drop_in(path, "10-a.toml", '[hub]\nverdict_days = 10\nstaff_groups = ["hpc"]\n')
    for name in (".x.toml", "30.toml~", "30.toml.dpkg-old", "30.toml.rpmsave", "README"):
        drop_in(path, name, "[hub]\nverdict_days = 99\n")
    config = load_config(path)
    assert config.common.hub_url == "http://one:1"
    assert (config.hub.min_coverage, config.hub.verdict_days, config.hub.staff_groups) == (0.5, 20, ("hpc",))


def test_without_the_file_drop_ins_are_read_over_the_defaults(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A default path that does not exist is no error, and its drop-ins count."""
    path.unlink()
    drop_in(path, "site.toml", "[hub]\nverdict_days = 7\n")
    monkeypatch.setattr("gpuwaste.core.config.DEFAULT_PATH", path)
    assert load_config().hub.verdict_days == 7
    with pytest.raises(ConfigError, match="No such file"):
        load_config(path)


def test_an_error_names_the_drop_in(path: Path) -> None:
    """An unknown key, a wrong type and broken TOML are the errors of the one file, with the drop-in's path."""
    file = path.with_name(f"{path.name}.d") / "site.toml"
    for text, words in (
        ("[hub]\nmin_covrage = 1.0\n", rf"^{file}: \[hub\] unknown key 'min_covrage': did you mean 'min_coverage'\?$"),
        ("[hub]\nmin_coverage = 'x'\n", rf"^{file}: \[hub\] min_coverage: expected float, found 'x'$"),
        ("[hbu]\n", rf"^{file}: unknown section \[hbu\]: did you mean 'hub'\?$"),
        ("hub = 5\n", rf"^{file}: \[hub\] is not a table$"),
        ("[hub\n", rf"^{file}: invalid TOML: "),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=words):
            load_config(path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling", "huge", "binary", "too many"])
def test_a_drop_in_that_is_no_file_of_toml_is_one_line(path: Path, kind: str) -> None:
    """Nothing is waited for, nothing huge is read, and the line names the path."""
    bad = path.with_name(f"{path.name}.d") / "bad.toml"
    words = f"{bad}: "
    if kind == "folder":
        bad.mkdir()
    elif kind == "pipe":
        os.mkfifo(bad)
    elif kind == "dangling":
        bad.symlink_to("none")
    elif kind == "huge":
        with bad.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "binary":
        bad.write_bytes(b"\x7fELF\x00\xff\xfe")
    else:
        words = f"{bad.parent}: over {MOST} files"
        for number in range(MOST + 1):
            drop_in(path, f"{number}.toml", "")
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_drop_in_that_the_user_may_not_read_is_an_error(path: Path) -> None:
    """A file that is closed to the user is never read as an empty one: the defaults would be in force unseen."""
    drop_in(path, "site.toml", "").chmod(0o600)
    for place in [place for place in path.parents if place.stat().st_mode & 0o777 == 0o700]:  # pytest's own
        place.chmod(0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match=r"site\.toml: cannot be read: Permission denied"):
            load_config(path)
    finally:
        os.seteuid(0)


def test_show_names_file_and_line_of_each_value(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The place is that of the value that counts, whatever looks like it in texts, comments and other sections."""
    text = '[agent]\nnode_name = """\nlisten = 1\n[hub]\n"""\nlisten = "a:1"\n# listen = "b:1"\n'
    text += "[hub]\n# listen = 'c:1'\n'listen' = 'd:1'\nstaff_groups = [\n  'listen',\n]\n"
    file = drop_in(path, "site.toml", text)
    assert main(["config", "show", "--config", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown, section = {}, ""
    for line in lines:
        section = line.strip("[]") if line.startswith("[") else section
        shown[f"{section}.{line.partition(' = ')[0]}"] = line
    assert shown["hub.listen"].startswith(f'listen = "d:1"  # set in {file}:10: ')
    assert f"# set in {file}:6: " in shown["agent.listen"]
    assert f"# set in {file}:2: " in shown["agent.node_name"]
    assert f"# set in {file}:11: " in shown["hub.staff_groups"]
    assert f"# set in {path}:2: " in shown["common.hub_url"]
    assert "set in" not in shown["agent.mig_minors"]


def test_check_names_the_drop_in_whose_value_is_wrong(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A value that cannot be used is said with its own file and line, and sound files are all named."""
    file = drop_in(path, "site.toml", "[agent]\n\ninterval_s = 0\n")
    assert main(["config", "check", "--config", str(path), "--role", "login"]) == 2
    assert capsys.readouterr().out.startswith(f"{file}:3: [agent] interval_s is 0")
    file.write_text("[plugin]\nkill_switch = '''\n/etc/off'''\n")
    assert main(["config", "check", "--config", str(path), "--role", "login"]) == 2
    assert f"{file} line 2: [plugin] kill_switch: expected" in capsys.readouterr().out
    file.write_text("")
    assert main(["config", "check", "--config", str(path), "--role", "login"]) == 0
    assert capsys.readouterr().out == f"{path}: ok\n{file}: ok\n"


def test_a_reload_sees_a_new_drop_in(path: Path) -> None:
    """What daemons read at SIGHUP has the drop-ins of that moment."""
    applied: list[Config] = []
    reloader = Reloader(load_config(path), lambda: load_config(path), ["hub"], {("hub.verdict_days",): applied.append})
    file = drop_in(path, "site.toml", "[hub]\nverdict_days = 5\n")
    reloader.reload()
    file.unlink()
    reloader.reload()
    assert [config.hub.verdict_days for config in applied] == [5, Config().hub.verdict_days]
