"""The words of texts for people: messages, help, pages and documentation have none for which there is a better one.

words.toml has the words, the better ones, and the places that may keep one. Read are the texts of Python (not its
docstrings: those that are printed are in docs/reference), of C, JavaScript and templates, TOML files of a site, and
Markdown.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("words.toml")
PROGRAMS = ("src/gpuwaste", "agent/gpuwaste", "models/gpuwaste")
PAGES = ("README.md", "CONTRIBUTING.md", "docs", "etc")
SENTENCE = re.compile(r"[\w,.:;)%}]\s+[\w({%]")  # two words: a key, a name or a path has none
CODE = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<[^>]*>", re.DOTALL)
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')


@dataclass(frozen=True)
class Finding:
    """A word in a file, at a line, and the better one."""

    file: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f'{self.file}:{self.line}: "{" ".join(self.word.split())}": better: {self.better}'


@cache
def lists() -> dict[str, Any]:
    """Return words.toml."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


@cache
def patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return each pattern with the better word."""
    return [(spaced(pattern), better) for pattern, better in lists()["better"].items()]


def spaced(pattern: str) -> re.Pattern[str]:
    """Return a pattern of words whose spaces match any white space; not inside of a name, a `key` or a {field}."""
    return re.compile(r"(?<![\w`{-])(?:" + pattern.replace(" ", r"\s+") + r")(?![\w`}-])", re.IGNORECASE)


def literally(text: str) -> re.Pattern[str]:
    """Return the pattern of a text as it is, but for its white space."""
    return re.compile(r"\s+".join(map(re.escape, text.split())))


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of two words or more that is no docstring and no key."""
    tree = ast.parse(source)
    ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            ignored.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
            yield node.lineno, node.value


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file that people read, each with its first line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from ((line, text) for line, text in python_texts(source) if SENTENCE.search(text))
    elif path.suffix in {".c", ".js"}:
        for found in LITERAL.finditer(source):
            if SENTENCE.search(found[0]):
                yield source.count("\n", 0, found.start()) + 1, found[0]
    elif path.suffix == ".html":
        yield 1, CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), source)
    else:
        yield 1, source


def files() -> list[Path]:
    """Return the files whose texts are read."""
    found = [
        path for folder in PROGRAMS for kind in ("py", "html", "js") for path in (ROOT / folder).rglob(f"*.{kind}")
    ]
    found += (ROOT / "plugins/job_submit").glob("[cl]*/*.c")
    for page in map(ROOT.joinpath, PAGES):
        found += [page] if page.is_file() else [path for kind in ("md", "toml") for path in page.rglob(f"*.{kind}")]
    return sorted(path for path in found if not path.name.endswith(".min.js"))


def findings(path: Path) -> Iterator[Finding]:
    """Yield the words of a file for which there are better ones, but for those that are allowed there."""
    name = path.relative_to(ROOT).as_posix()
    own = [literally(entry["text"]) for entry in lists()["allowed"] if entry["file"] == name]
    for line, text in texts(path):
        for allowed in own:
            text = allowed.sub(lambda found: re.sub(r"\S", "_", found[0]), text)  # noqa: PLW2901
        for pattern, better in patterns():
            for found in pattern.finditer(text):
                yield Finding(name, line + text.count("\n", 0, found.start()), found[0], better)


def test_no_text_has_a_word_for_which_there_is_a_better_one() -> None:
    """Each finding names file, line and word, and the better one."""
    found = [str(finding) for path in files() for finding in findings(path)]
    assert found == []


@pytest.mark.parametrize("entry", lists()["allowed"], ids=lambda entry: entry["file"])
def test_an_allowed_place_exists(entry: dict[str, str]) -> None:
    """A place that keeps a word has it still, and a reason."""
    pattern = literally(entry["text"])
    assert any(pattern.search(text) for _, text in texts(ROOT / entry["file"]))
    assert entry["reason"]


def test_strings_are_found_and_docstrings_left() -> None:
    """A sentence with values counts with its line, a docstring, a name and a path do not; words break over lines."""
    source = (
        '"""Told here."""\n\nNAME = "told"\ndef f(x):\n    """Asked."""\n    return (f"{x} was "\n     "told twice")\n'
    )
    assert [text for text in python_texts(source) if SENTENCE.search(text[1])] == [(6, "{} was told twice")]
    assert spaced("none of them").search("it has none of\n    them")
    assert not spaced("told").search("`told` and as_told")
