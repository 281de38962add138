"""Growth: measures that a reader's CPU time grows at most linearly with its text, whatever the text is made of.

CPU time of this thread is compared between sizes that double, so a loaded host does not decide; a size that looks too
slow is measured again, and the base with it: the best of the one and the worst of the other are compared.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Final

from gpuwaste.core.errors import GpuwasteError

Read = Callable[[str], object]

BASE: Final = 2048
LARGEST: Final = 32_768  # characters: a quadratic reader takes 256 times what BASE takes, a linear one 16 times
_FACTOR: Final = 4.0  # how much slower for its size a larger text may be than the base: caches, the allocator
_LEAST_S: Final = 100e-6  # a base that is faster counts as this
_STEP: Final = 4
_TRIES: Final = 4


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _nested(opening: str, closing: str) -> Callable[[int], str]:
    return lambda size: opening * (size // 2) + closing * (size // 2)


_UNITS: Final = {
    "newlines": "\n",
    "spaces": " ",
    "tabs": "\t",
    "digits": "7",
    "zeros": "0",
    "letters": "a",
    "hashes": "#",
    "dashes": "-",
    "open brackets": "[",
    "close brackets": "]",
    "open parentheses": "(",
    "commas": ",",
    "equals": "=",
    "colons": ":",
    "dots": ".",
    "pipes": "|",
    "backslashes": "\\",
    "quotes": '"',
    "apostrophes": "'",
    "at signs": "@",
    "percents": "%",
    "stars": "*",
    "no ASCII": "\u0416",
    "surrogates": "\udcff",
    "escapes": "\x1b",
    "NULs": "\0",
    "blank lines": " \n",
    "carriage returns": "\r\n",
    "comments": "\n#",
    "shebangs": "#!/sh ",
    "directives": "#SBATCH ",
    "lines of directives": "#SBATCH --gres=gpu:1\n",
    "separators": "#SBATCH hetjob\n",
    "sets": "set ",
    "lines of set": "set\n",
    "or else": "|| ",
    "accelerate": "accelerate ",
    "processes": "--num_gpus= ",
    "fields": "a=1 ",
    "items": "gpu:1,",
    "ranges": "[1-2]",
    "names": "a1,",
    "addresses": "a@b,",
    "dotted addresses": "a@b.",
    "sections": "[a]\n",
    "tokens": ";gw=0123456789abcdef",
    "overrides": ";gpuwaste:override=",
    "job headers": "JobId=1 ",
    "job names": " JobName=",
    "shell words": "a 'b' ",
    "pairs": "{}",
}

_NESTS: Final = {"brackets": ("[", "]"), "parentheses": ("(", ")"), "braces": ("{", "}"), "quotes": ('"', '"')}

SHAPES: Final[Mapping[str, Callable[[int], str]]] = {
    **{name: _repeated(unit) for name, unit in _UNITS.items()},
    **{f"nested {name}": _nested(*ends) for name, ends in _NESTS.items()},
    "one word, then spaces": lambda size: "set" + " " * (size - 3),
    "digits, then a letter": lambda size: "7" * (size - 1) + "x",
    "an option, then newlines": lambda size: "--nproc_per_node" + "\n" * (size - 16),
}


def quadratic(read: Read, make: Callable[[int], str], largest: int = LARGEST) -> str:
    """Return what grows faster than its text, "" where nothing does; an error of ours counts as an answer."""
    size, base_s = BASE, max(_LEAST_S, _seconds(read, make(BASE)))
    while size < largest:
        size *= _STEP
        took_s = _seconds(read, make(size))
        for _ in range(_TRIES):
            if took_s <= _FACTOR * base_s * size / BASE:
                break
            base_s = max(base_s, _seconds(read, make(BASE)))
            took_s = min(took_s, _seconds(read, make(size)))
        else:
            return f"{BASE} characters take {base_s * 1e3:.2f} ms, {size} take {took_s * 1e3:.1f} ms"
    return ""


def _seconds(read: Read, text: str) -> float:
    """Return the CPU seconds of one reading."""
    began = time.thread_time()
    with contextlib.suppress(GpuwasteError):
        read(text)
    return time.thread_time() - began
