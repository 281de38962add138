"""Programs of the site that actions run: real processes, bounded, with no shell and only root's files."""

import os
from pathlib import Path

import pytest

from gpuwaste.act.actions.action_kind import SiteProgram
from gpuwaste.actor.actor_settings import ActorSettings, SitePrograms
from gpuwaste.core.act_config import ActorConfig
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.clients.command import CommandError

CHECK = SiteProgram("health_check", ("node",))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files that are root's")


def program(folder: Path, script: str, mode: int = 0o755) -> Path:
    """Write a program."""
    path = folder / "check"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


def run(path: Path, *words: str, within_s: float = 30.0, kept: list[int] | None = None, node: str = "gpu1") -> str:
    """Run it as health_check."""
    programs = SitePrograms({"health_check": (str(path), *words)}, within_s)
    return programs.run(CHECK, {"node": node}, lambda: kept.append(1) if kept is not None else None)


@needs_root
def test_values_are_words_and_no_shell_reads_them(tmp_path: Path) -> None:
    """A value with blanks, quotes and $() is one word; the environment is clean; the last line is the answer."""
    known = "PATH|LC_ALL|TZ|PWD|OLDPWD|SHLVL|SLURM_CONF|_"
    path = program(tmp_path, f'echo "<$1> <$2>$(env | cut -d= -f1 | grep -vE "^({known})$")"')
    assert run(path, "-w", "{node}", node="a $(touch /tmp/x) 'b'") == "<-w> <a $(touch /tmp/x) 'b'>"


@needs_root
def test_an_exit_code_is_a_failure_with_its_words(tmp_path: Path) -> None:
    """The last line of stderr says why."""
    with pytest.raises(CommandError, match="exit code 3: row remap pending") as caught:
        run(program(tmp_path, "echo begin; echo 'row remap pending' >&2; exit 3"))
    assert caught.value.code == 3


@needs_root
def test_a_program_that_hangs_is_killed_and_the_lease_is_kept(tmp_path: Path) -> None:
    """Signs of life go on while it runs; its children are killed with it; nobody knows what it did."""
    kept: list[int] = []
    with pytest.raises(CommandError, match="no answer after") as caught:
        run(program(tmp_path, "sleep 600 & sleep 600"), within_s=2.5, kept=kept)
    assert caught.value.code is None
    assert len(kept) >= 2


@needs_root
@pytest.mark.parametrize("fault", ["writable", "foreign", "missing"])
def test_a_file_that_others_can_change_is_not_run(fault: str, tmp_path: Path) -> None:
    """Writable by everybody, another user's, or not there: one line, and nothing is begun."""
    path = program(tmp_path, f"touch {tmp_path}/done", 0o777 if fault == "writable" else 0o755)
    if fault == "foreign":
        os.chown(path, 12345, 0)
    if fault == "missing":
        path.unlink()
    with pytest.raises(CommandError) as caught:
        run(path)
    assert caught.value.code == 126
    assert str(caught.value).startswith("[actor] health_check_program")
    assert not (tmp_path / "done").exists()


@needs_root
@pytest.mark.parametrize("through_link", [False, True])
def test_a_program_that_a_group_can_exchange_is_not_run(through_link: bool, tmp_path: Path) -> None:
    """In a directory like Debian's /usr/local, or by a link there: the line has the chmod; then it runs."""
    local, closed = tmp_path / "local", tmp_path / "closed"
    for place in (local, closed):
        place.mkdir()
    os.chown(local, 0, 50)
    local.chmod(0o2775)
    path = program(closed if through_link else local, f"touch {tmp_path}/done; echo ok")
    if through_link:
        (local / "check").symlink_to(path)
    with pytest.raises(CommandError, match=f"chmod g-w {local}$") as caught:
        run(local / "check")
    assert caught.value.code == 126
    assert not (tmp_path / "done").exists()
    local.chmod(0o2755)
    assert run(local / "check") == "ok"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), r"health_check_program is empty: action health_check needs a program"),
        (("check", "{node}"), r"'check': expected the full path"),
        (("/opt/{node}", "x"), r"no \{name\} in the path"),
        (("/opt/check", "{nodes}"), r"\{nodes\} is not known: did you mean 'node'\?"),
    ],
)
def test_a_wrong_program_is_refused_at_the_start(words: tuple[str, ...], problem: str) -> None:
    """The actor does not start with an action that it could not do."""
    actor = ActorConfig(actions=("health_check",), health_check_program=words)
    with pytest.raises(ConfigError, match=problem):
        ActorSettings.from_config(Config(actor=actor))


def test_programs_of_models_are_ours_by_default() -> None:
    """Promote and rollback name the model that the rule saw: another one in use is left alone."""
    settings = ActorSettings.from_config(Config(actor=ActorConfig(actions=("promote", "rollback", "cancel"))))
    assert set(settings.programs.words) == {"promote", "rollback"}
    assert all("--if-champion" in words for words in settings.programs.words.values())
