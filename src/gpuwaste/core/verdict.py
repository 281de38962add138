"""Verdict: what was said of one submission, why, by which policy and model (CONTRACTS.md, "Verdict").

A program that submits sees the action and at most three lines; the row of the audit keeps the rest. The outcome is
joined later, through the token in the job's admin_comment.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, get_args

from gpuwaste.core.errors import ParseError

Action = Literal["pass", "annotate", "warn", "reject"]
Mode = Literal["off", "shadow", "annotate", "warn", "reject"]
Op = Literal["submit", "modify"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)  # each is stronger than the one before
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
ID_LENGTH: Final = 16
MAX_LINES: Final = 3
MAX_LINE: Final = 160  # characters of a line at the user's terminal
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_RANDOM_BITS: Final = 64  # one question to the system for all random digits
_TIME_DIGITS: Final = 10  # microseconds until the year 2085
MAX_TEXT: Final = 4096  # characters of any text of a verdict
_MAX_ITEMS: Final = 64
_MAX_I64: Final = 2**63 - 1
_LARGEST: Final = 1e300  # what no number of a verdict comes near; JSON knows more
_TOKEN: Final = re.compile(r"(?:^|;)gw=([0-9a-z]{16})(?=;|\Z)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a model or history expects of one target, as policies and texts take it.

    `p` is a probability 0..1, or `quantiles` ("0.9" -> value) are in the target's unit; `level` is the bundle's own
    operating point that p reaches (warn, reject), "" for none; `basis` is the number of past jobs where `source` is
    history. `why` are sentences in the user's own numbers, the strongest first.
    """

    target: str
    source: str
    basis: int
    p: float | None = None
    level: str = ""
    quantiles: Mapping[str, float] = field(default_factory=dict)
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A smaller request: the exact option, why it is enough, and what it saves: GPUs, seconds of limit, bytes.

    `kind` is the name of the change's file in predict/changes (gpus, memory, time_limit).
    """

    kind: str
    option: str
    text: str
    saves: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of the audit. Times are UTC; `at_utc_us` is when the request came, `latency_us` how long the answer took.

    `would_be` is the action without the policy's mode, its budget and all that holds back; `action` is what was said.
    `held` names what held it back ("shadow", "budget", "override", "random", ...), "" for nothing. `sampled` marks a
    would-be reject that passed at random, so that the precision of rejecting can be measured. `script` is the whole
    script's hash, "" without one. `run_job_id` is set where the job was known (a modification), else it is joined.
    `triggers` are the targets that made `would_be`, with the number that reached the threshold: by them a verdict is
    scored.
    """

    id: str
    cluster: str
    at_utc_us: int
    op: Op
    policy: str
    mode: Mode
    action: Action
    would_be: Action
    held: str = ""
    sampled: bool = False
    override: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    name: str = ""
    is_array: bool = False
    het_offset: int | None = None
    run_job_id: int | None = None
    gpus: int = 0
    time_limit_s: int | None = None
    p: Mapping[str, float] = field(default_factory=dict)
    quantiles: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    triggers: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    script: str = ""
    model_hash: str = ""
    feature_hash: str = ""
    latency_us: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as it travels to the hub and as `gpuwaste verdicts --json` prints it."""
        return asdict(self)


def verdict_from_json(data: object) -> Verdict:
    """Read a verdict; what a newer advisor adds is ignored. Raises ParseError."""
    try:
        if not isinstance(data, Mapping) or data["action"] not in ACTIONS or data["would_be"] not in ACTIONS:
            raise ParseError("verdict: no object with an action that this version knows")
        if data["mode"] not in MODES or data["op"] not in get_args(Op) or not is_token(data["id"]):
            raise ParseError("verdict: a mode, an op or an id that this version does not know")
        known = {name: read(data[name]) for name, read in _READ.items() if name in data}
        return Verdict(**known)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"verdict: lacks a part or has a wrong one: {str(error)[:200]}") from error


def new_id(at_utc_us: int) -> str:
    """Return a verdict's id: the instant and six random digits, all of base 36.

    Ids that rise with time let the hub's store find the few of a page without reading them all.
    """
    time = ""
    for _ in range(_TIME_DIGITS):
        at_utc_us, digit = divmod(at_utc_us, len(_DIGITS))
        time = _DIGITS[digit] + time
    chance, rest = secrets.randbits(_RANDOM_BITS), ""
    for _ in range(ID_LENGTH - _TIME_DIGITS):
        chance, digit = divmod(chance, len(_DIGITS))
        rest += _DIGITS[digit]
    return time + rest


def is_token(value: object) -> bool:
    """Tell whether a value is a verdict's id."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-z]{16}", value, re.ASCII) is not None


def token_of(admin_comment: str) -> str:
    """Return the verdict's id of an admin_comment, "" where there is none; of several, the last one's."""
    found = _TOKEN.findall(admin_comment)
    return found[-1] if found else ""


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"no text of at most {MAX_TEXT} characters: {str(value)[:40]!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"neither true nor false: {str(value)[:40]!r}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_I64:
        raise ValueError(f"no whole number: {str(value)[:40]!r}")
    return value


def _optional(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise ValueError(f"no number: {str(value)[:40]!r}")
    return float(value)


def _numbers(value: Any) -> dict[str, float]:
    return {_text(name): _number(item) for name, item in _few(value.items())}


def _quantiles(value: Any) -> dict[str, dict[str, float]]:
    return {_text(name): _numbers(item) for name, item in _few(value.items())}


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"no list of texts: {str(value)[:40]!r}")
    return tuple(_text(item) for item in _few(value))


def _few(items: Any) -> Any:
    if len(items) > _MAX_ITEMS:
        raise ValueError(f"{len(items)} items, at most {_MAX_ITEMS}")
    return items


_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{f.name: _text for f in fields(Verdict)},
    **dict.fromkeys(("at_utc_us", "gpus", "latency_us"), _whole),
    **dict.fromkeys(("het_offset", "run_job_id", "time_limit_s"), _optional),
    **dict.fromkeys(("sampled", "is_array"), _flag),
    **dict.fromkeys(("p", "triggers"), _numbers),
    **dict.fromkeys(("reasons", "lines"), _texts),
    "quantiles": _quantiles,
}
