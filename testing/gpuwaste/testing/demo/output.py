"""What the demo prints: its progress, what each user sees, and the table of checks."""

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tabulate import tabulate

from gpuwaste.testing.demo.checks import DemoCheck, ReportedSite
from gpuwaste.testing.demo.story import NO_ADVICE, Story, questions

_HEADS: Final = ("measured by the load program", "reported by gpuwaste")
_WIDTHS: Final = (33, 28, 27)
"""With a column of six for the outcome, and two blanks between them, 100 columns."""
_TIMES: Final = "times: the first and the last sample, in seconds after the start and the end that sacct has"
Say = Callable[[str], None]


def clock(seconds: float) -> str:
    """Return a time since the start as minutes and seconds: 1:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def check_table(checks: Sequence[DemoCheck], label: str = "") -> str:
    """Return the checks as a table of at most 100 columns; `label` marks those of a recording."""
    rows = [("ok" if c.ok else "FAILED", *_wrapped(c.what, c.truth, c.said)) for c in checks]
    table = tabulate(rows, headers=["", f"check{label}", *_HEADS], disable_numparse=True)
    return f"{table}\n{_TIMES}"


def _wrapped(*cells: str) -> Iterator[str]:
    # tabulate's own maxcolwidths fails on a number with commas.
    for cell, width in zip(cells, _WIDTHS, strict=True):
        yield "\n".join(textwrap.wrap(cell, width))


def reports(site: ReportedSite, story: Story, *, all_users: bool) -> dict[str, str]:
    """Return what users see, by the command that they run: alice's report, or those of all users."""
    shown = {"gpuwaste now --hours 1   (while the first jobs ran)": story.top} if all_users else {}
    for user, command in questions(story) if all_users else questions(story)[:1]:
        words = [*command, *(site.window if command[0] == "report" else ())]
        done = site.gpuwaste(*words, user=user, check=False)
        shown[f"{user}$ gpuwaste {' '.join(words)}"] = done.stdout + done.stderr
    if all_users:
        web = site.gpuwaste("web", user="alice", check=False)
        shown["alice$ gpuwaste web"] = web.stderr + web.stdout
    if all_users and story.advice:
        for user, told in ((story.advice.owner, story.advice.told), (story.advice.other, story.advice.control)):
            shown[f"{user}$ {story.advice.command}"] = f"{told or NO_ADVICE}\n"
    return shown


def finish(
    shown: Mapping[str, str],
    checks: Sequence[DemoCheck],
    say: Say,
    *,
    result: Path | None,
    facts: Mapping[str, Any],
    label: str = "",
) -> int:
    """Print the reports and the checks, write them to `result`, and return the exit code: 0 where all hold."""
    for command, text in shown.items():
        print(f"\n{command}\n{text}")
    print(check_table(checks, label))
    say(f"done: {sum(check.ok for check in checks)} of {len(checks)} checks hold{label}")
    if result:
        document = {**facts, "reports": dict(shown), "checks": [[c.what, c.truth, c.said, c.ok] for c in checks]}
        result.write_text(json.dumps(document, indent=1))
    return 0 if all(check.ok for check in checks) else 1
