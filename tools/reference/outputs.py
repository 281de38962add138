"""The outputs in hand-written pages: each is what a command prints, and `make docs` writes it anew.

A page names the command in a comment above the block: `<!-- output of: gpuwaste rules list; as oper; parts 1-2 -->`.
With `as`, the output is that user's (or `files`) in tests/golden/answers.xz. With `in` the command is run here,
in that scene of tools/reference/scenes.py. Without both it is run here without a hub. `parts` are the paragraphs to
show, counted from 1: parts that are left out become a line with `...`. A line that is too wide is cut, with `wrapped`
it goes on in the next one. `trained` is for figures of a model that is trained here, whose last digits are the
processor's: an output that differs in digits only stays as it is.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tools.golden import kept
from tools.reference.scenes import printed, run_in

ROOT: Final = Path(__file__).parents[2]
ANSWERS: Final = ROOT / "tests/golden/answers.xz"
WIDTH: Final = 118
_WRAPPER: Final = textwrap.TextWrapper(
    WIDTH, subsequent_indent=" " * 18, break_long_words=False, break_on_hyphens=False
)
_BLOCK: Final = re.compile(
    r"^(?P<mark> *<!-- output of: (?P<command>gpuwaste [^;]*?)(?:; (?:as (?P<user>\w+)|in (?P<scene>\w+)))?"
    r"(?:; parts (?P<parts>[\d,-]+))?(?P<wrapped>; wrapped)?(?P<trained>; trained)? -->\n)"
    r"(?P<fence> *```)text\n.*?^ *```$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER: Final = re.compile(r"[\d.]+|-{2,}")
_EXIT: Final = re.compile(r"\Aexit code \d+\n")


def pages() -> Iterator[str]:
    """Yield the paths, in the repository, of the pages that have such a block."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if _BLOCK.search(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT))


def page(path: str) -> str:
    """Return the page with the outputs of today."""
    return renewed((ROOT / path).read_text(encoding="utf-8"))


def renewed(text: str) -> str:
    """Return a page's text with each output of today; KeyError where an answer is not kept."""
    return _BLOCK.sub(_block, text)


def _block(block: re.Match[str]) -> str:
    command, user, scene = block["command"], block["user"], block["scene"]
    output = _kept(user, command) if user else run_in(scene, command) if scene else _run(command)
    indent = block["fence"].removesuffix("```")
    fitted = _WRAPPER.wrap if block["wrapped"] else _cut
    shown = [part for line in chosen(output, block["parts"]).splitlines() for part in fitted(line) or [""]]
    lines = [f"{indent}{line}".rstrip() for line in shown]
    text = "\n".join([f"{block['mark']}{block['fence']}text", *lines, block["fence"]])
    return block[0] if block["trained"] and _digitless(block[0]) == _digitless(text) else text


def _digitless(text: str) -> list[str]:
    return _NUMBER.sub("0", text).split()


def chosen(output: str, parts: str | None) -> str:
    """Return the paragraphs of an output that `parts` (1,3-4) names; a line `...` where some are left out."""
    paragraphs = output.strip("\n").split("\n\n")
    if parts is None:
        return "\n\n".join(paragraphs)
    shown: list[str] = []
    after = 0
    for first, last in (_bounds(one) for one in parts.split(",")):
        shown += ["..."] if first > after + 1 else []
        shown += paragraphs[first - 1 : last]
        after = last
    return "\n\n".join([*shown, *(["..."] if after < len(paragraphs) else [])])


def _bounds(part: str) -> tuple[int, int]:
    first, _, last = part.partition("-")
    return int(first), int(last or first)


def _cut(line: str) -> list[str]:
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."]


def _kept(user: str, command: str) -> str:
    """Return a kept answer, without its exit code, the names of its folders and what went to stderr."""
    name = f"command/{user} {command.removeprefix('gpuwaste ')}"
    if name not in _answers():
        raise KeyError(f"{name}: no such answer in {ANSWERS.name}: name another in the page's comment")
    text = _EXIT.sub("", _answers()[name]).partition("--- stderr\n")[0]
    return text.replace("FOLDER/", "").replace("ROOT/", "")


@cache
def _answers() -> dict[str, str]:
    return kept.read(ANSWERS)


@cache
def _run(command: str) -> str:
    """Return what a command prints here, without a configuration of this host."""
    code, text = printed(shlex.split(command)[1:], "/dev/null")
    if code:
        raise ValueError(f"{command}: exit code {code}")
    return text
