"""Facts of a job's name and script, as numbers; computed once for each text.

Users choose these texts, and their submissions wait for the advisor. So a script is read up to MAX_SCRIPT, each step
takes CPU in proportion to that (tests/unit/test_growth.py measures it), and a budget is checked between the steps.
"""

import re
import threading
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.clock import UNLIMITED, ReadingBudget
from gpuwaste.core.text import short_cache

NAME_FACTS: Final = ("name_length", "name_digits", "name_test")
SCRIPT_FACTS: Final = (
    "script_lines", "script_launcher", "script_python", "script_torchrun", "script_processes",
    "script_environment", "script_container", "script_set_e", "script_retry",
)  # fmt: skip
MAX_SCRIPT: Final = 16 * 1024  # characters read: a longer script contains data
_NAN: Final = float("nan")
_KEPT: Final = 256  # scripts whose facts are cached: 16 MB at most
# Blanks are matched without the line's end, and possessively: a pattern that may begin at every line and run on
# over the next lines takes quadratic time in a text of empty lines.
_LINE: Final = r"^[^\S\n]*+"
# Lookbehind after the first letter: it must begin a word. A pattern whose alternatives begin with plain letters
# skips to the next such letter; one that begins with \b tries every character.
_IN: Final = r"(?<=\b.)"
_TEST: Final = re.compile(r"test|debug|dbg|tmp|try|trial|check|bench|hello|sleep", re.IGNORECASE)
_COMMENT: Final = re.compile(rf"{_LINE}#[^\n]*+", re.MULTILINE)
_LAUNCHER: Final = re.compile(rf"(?:s{_IN}run|m{_IN}pirun|m{_IN}piexec(?:\.hydra)?|p{_IN}run)\b")
_PYTHON: Final = re.compile(
    rf"(?:p{_IN}ython[\d.]*|i{_IN}python|j{_IN}upyter|t{_IN}orchrun|a{_IN}ccelerate|d{_IN}eepspeed)\b"
)
_TORCHRUN: Final = re.compile(
    rf"(?:t{_IN}orchrun|t{_IN}orch\.distributed\.(?:run|launch)|a{_IN}ccelerate\s+launch|d{_IN}eepspeed)\b"
)
_PROCESSES: Final = re.compile(r"--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus)[=\s]+(\d{1,6})\b")
_ENVIRONMENT: Final = re.compile(
    rf"c{_IN}onda\s+(?:activate|run)\b|m{_IN}amba\s+(?:activate|run)\b|m{_IN}icromamba\s+(?:activate|run)\b"
    rf"|m{_IN}odule\s+(?:load|add)\b|m{_IN}l\s+\w|bin/activate\b"
)
_CONTAINER: Final = re.compile(
    rf"a{_IN}pptainer\b|s{_IN}ingularity\b|p{_IN}odman\b|d{_IN}ocker\b|e{_IN}nroot\b|s{_IN}hifter\b|--container-image"
)
_SET_E: Final = re.compile(rf"{_LINE}set\s+-(?:\w*e\w*|o\s+errexit)\b|^#!\S*sh\s+-\w*e", re.MULTILINE)
_RETRY: Final = re.compile(
    rf"u{_IN}ntil\b|r{_IN}etry\b|m{_IN}ax_?retries\b|\|\|\s*(?:true|:)|scontrol\s+requeue|--requeue\b"
)
_known: dict[str, tuple[float, ...]] = {}
_lock: Final = threading.Lock()


@short_cache(4096)
def name_facts(name: str) -> tuple[float, ...]:
    """Return NAME_FACTS of a job's name: characters, share of digits, whether it suggests a test; NaN for no name."""
    if not name:
        return (_NAN, _NAN, _NAN)
    digits = sum(map(str.isdigit, name))
    return (float(len(name)), digits / len(name), float(_TEST.search(name) is not None))


def script_facts(script: str | None, budget: ReadingBudget = UNLIMITED) -> tuple[float, ...]:
    """Return SCRIPT_FACTS of a batch script, all NaN if there is none; comment lines are skipped.

    Raises NotReadError if the budget ends first.
    """
    if script is None:
        return (_NAN,) * len(SCRIPT_FACTS)
    text = script[:MAX_SCRIPT]
    found = _known.get(text)
    if found is None:
        found = tuple(_facts(text, budget))
        with _lock:
            while len(_known) >= _KEPT:
                del _known[next(iter(_known))]
            _known[text] = found
    return found


def _facts(text: str, budget: ReadingBudget) -> Iterator[float]:
    budget.check()
    code = _COMMENT.sub("", text)
    budget.check()
    yield float(sum(map(bool, map(str.strip, code.splitlines()))))
    for pattern in (_LAUNCHER, _PYTHON, _TORCHRUN):
        budget.check()
        yield float(pattern.search(code) is not None)
    budget.check()
    count = _PROCESSES.search(code)
    yield float(count[1]) if count else _NAN
    for pattern, place in ((_ENVIRONMENT, code), (_CONTAINER, code), (_SET_E, text), (_RETRY, text)):
        budget.check()
        yield float(pattern.search(place) is not None)
