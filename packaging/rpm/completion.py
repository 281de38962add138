"""The completion of the command for bash, zsh and fish, from its parser: what may follow each of its first words."""

import argparse
from collections.abc import Iterator

Words = dict[str, str]
"""What may be written next, each with its description."""


def files(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the completions by their path below /usr/share."""
    table = dict(contexts(parser))
    return {
        "bash-completion/completions/gpuwaste": bash(table),
        "zsh/site-functions/_gpuwaste": zsh(table),
        "fish/vendor_completions.d/gpuwaste.fish": fish(table),
    }


def contexts(parser: argparse.ArgumentParser, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Words]]:
    """Yield the words before, the deepest first, with what may follow them: actions, then long options."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001 argparse shows its declarations nowhere else
    following: Words = {}
    for action in below:
        following |= {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 same
        for name, sub in action.choices.items():
            yield from contexts(sub, (*before, name))
    for option in parser._actions:  # noqa: SLF001 same
        if option.help != argparse.SUPPRESS:
            following |= {name: option.help or "" for name in option.option_strings if name.startswith("--")}
    yield before, {word: " ".join(text.replace("%%", "%").split()) for word, text in following.items()}


def bash(table: dict[tuple[str, ...], Words]) -> str:
    """Return bash's completion: the words of the command line before the last choose the list."""
    cases = [f'    "{" ".join(before)}"*) words="{" ".join(words)}" ;;' for before, words in table.items() if before]
    lines = [
        "# bash completion of gpuwaste, made from its parser",
        "_gpuwaste() {",
        '  local words before="${COMP_WORDS[*]:1:COMP_CWORD-1}"',
        "  case $before in",
        *cases,
        f'    "") words="{" ".join(table[()])}" ;;',
        "    *) return ;;",
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _gpuwaste gpuwaste",
    ]
    return "\n".join(lines) + "\n"


def zsh(table: dict[tuple[str, ...], Words]) -> str:
    """Return zsh's completion, with descriptions; files where nothing else matches."""
    lines = [
        "#compdef gpuwaste",
        "# made from the command's parser",
        "local -a found",
        'case "${words[2,CURRENT-1]}" in',
    ]
    for before, words in table.items():
        pattern = quoted(" ".join(before)) + ("*" if before else "")
        lines.append(f"  {pattern}) found=(")
        lines += [f"    {quoted(word + ':' + text)}" for word, text in words.items()]
        lines.append("  ) ;;")
    return "\n".join([*lines, "esac", "_describe gpuwaste found || _files"]) + "\n"


_FISH = """# fish completion of gpuwaste, made from its parser
function __gpuwaste_words
    set -l before (commandline -opc)
    string match -v -- '-*' $before[2..-1]
end
function __gpuwaste_is
    test (string join ' ' (__gpuwaste_words) '') = (string join ' ' $argv '')
end
function __gpuwaste_in
    string match -q -- "$argv *" (string join ' ' (__gpuwaste_words) '')
end
"""


def fish(table: dict[tuple[str, ...], Words]) -> str:
    """Return fish's completion, with descriptions."""
    lines = [_FISH.rstrip()]
    for before, words in table.items():
        for word, text in words.items():
            place = f"__gpuwaste_{'in' if word.startswith('--') and before else 'is'} {' '.join(before)}".rstrip()
            what = f"-l {word[2:]}" if word.startswith("--") else f"-f -a {fish_quoted(word)}"
            lines.append(f"complete -c gpuwaste -n {fish_quoted(place)} {what} -d {fish_quoted(text)}")
    return "\n".join(lines) + "\n"


def fish_quoted(text: str) -> str:
    """Return text in single quotes, as fish reads it literally."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted(text: str) -> str:
    """Return text in single quotes, as a POSIX shell reads it literally."""
    return "'" + text.replace("'", "'\\''") + "'"
