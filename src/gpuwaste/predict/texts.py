"""Facts of a job's name and script, as numbers; computed once for each text."""

import re
from functools import lru_cache
from typing import Final

NAME_FACTS: Final = ("name_length", "name_digits", "name_test")
SCRIPT_FACTS: Final = (
    "script_lines", "script_launcher", "script_python", "script_torchrun", "script_processes",
    "script_environment", "script_container", "script_set_e", "script_retry",
)  # fmt: skip
MAX_SCRIPT: Final = 1 << 18  # characters looked at: a script with data in it is cut
_NAN: Final = float("nan")
_TEST: Final = re.compile(r"test|debug|dbg|tmp|try|trial|check|bench|hello|sleep", re.IGNORECASE)
# A line's blanks are named without the line's end and kept once taken: a pattern that may begin at every line, and run
# over the next ones, takes the square of a text of empty lines.
_COMMENT: Final = re.compile(r"^[^\S\n]*+#[^\n]*+", re.MULTILINE)
_LAUNCHER: Final = re.compile(r"\b(srun|mpirun|mpiexec(?:\.hydra)?|prun)\b")
_PYTHON: Final = re.compile(r"\b(?:python[\d.]*|ipython|jupyter|torchrun|accelerate|deepspeed)\b")
_TORCHRUN: Final = re.compile(r"\b(?:torchrun|torch\.distributed\.(?:run|launch)|accelerate\s+launch|deepspeed)\b")
_PROCESSES: Final = re.compile(r"--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus)[=\s]+(\d{1,6})\b")
_ENVIRONMENT: Final = re.compile(
    r"\b(?:conda|mamba|micromamba)\s+(?:activate|run)\b|\bmodule\s+(?:load|add)\b|\bml\s+\w|bin/activate\b"
)
_CONTAINER: Final = re.compile(r"\b(?:apptainer|singularity|podman|docker|enroot|shifter)\b|--container-image")
_SET_E: Final = re.compile(r"^[^\S\n]*+set\s+-(?:\w*e\w*|o\s+errexit)\b|^#!\S*sh\s+-\w*e", re.MULTILINE)
_RETRY: Final = re.compile(r"\b(?:until|retry|max_?retries)\b|\|\|\s*(?:true|:)|scontrol\s+requeue|--requeue\b")


@lru_cache(maxsize=4096)
def name_facts(name: str) -> tuple[float, ...]:
    """Return NAME_FACTS of a job's name: characters, share of digits, whether it speaks of a test; NaN for no name."""
    if not name:
        return (_NAN, _NAN, _NAN)
    digits = sum(c.isdigit() for c in name)
    return (float(len(name)), digits / len(name), float(_TEST.search(name) is not None))


@lru_cache(maxsize=256)
def script_facts(script: str | None) -> tuple[float, ...]:
    """Return SCRIPT_FACTS of a batch script, all NaN where there is none; comment lines are not looked at."""
    if script is None:
        return (_NAN,) * len(SCRIPT_FACTS)
    text = script[:MAX_SCRIPT]
    code = _COMMENT.sub("", text)
    count = _PROCESSES.search(code)
    flags = [_LAUNCHER, _PYTHON, _TORCHRUN]
    return (
        float(sum(1 for line in code.splitlines() if line.strip())),
        *(float(pattern.search(code) is not None) for pattern in flags),
        float(count[1]) if count else _NAN,
        *(float(pattern.search(code) is not None) for pattern in (_ENVIRONMENT, _CONTAINER)),
        float(_SET_E.search(text) is not None),
        float(_RETRY.search(text) is not None),
    )
