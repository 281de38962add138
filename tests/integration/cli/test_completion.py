"""The completions of the packages, in the shells themselves: what follows a command, an action, a part of an option."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.cli.main import build_parser
from gpuwaste.testing.patience import patient

PACKAGING = Path(__file__).parents[3] / "packaging" / "rpm"
BASH = """source bash-completion/completions/gpuwaste
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpuwaste; printf '%s\\n' "${{COMPREPLY[@]}}" """
ZSH = """_describe() {{ print -l -- $found | cut -d: -f1 | grep -- "^${{words[CURRENT]}}" }}; _files() {{ : }}
words=({words}); CURRENT=$#words; source zsh/site-functions/_gpuwaste"""
FISH = """source fish/vendor_completions.d/gpuwaste.fish; complete -C '{line}' | cut -f1"""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the completions as a package has them below /usr/share."""
    sys.path.insert(0, str(PACKAGING))
    try:
        import completion  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(PACKAGING))
    folder = tmp_path_factory.mktemp("share")
    for path, text in completion.files(build_parser()).items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gpuwaste re", {"report"}),
        ("gpuwaste model tr", {"train", "trial"}),
        ("gpuwaste report --js", {"--json"}),
        ("gpuwaste model train --time-", {"--time-budget", "--time-zone"}),
        ("gpuwaste simulate what-if gpus --prop", {"--propose"}),
    ],
)
def test_a_shell_completes_commands_actions_and_options(shell: str, line: str, offered: set[str], share: Path) -> None:
    """bash, zsh and fish offer what the parser has at that place, and nothing else."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this host")
    script = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(words=line, line=line)
    alone = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["-N"]}[shell]
    done = subprocess.run(
        [shell, *alone, "-c", script], cwd=share, capture_output=True, text=True, check=False, timeout=patient(30)
    )
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered
