"""Verdict: the answer to one submission, its reasons, policy and model (CONTRACTS.md, "Verdict").

The submitting program receives the action and at most three lines; the audit row keeps the rest. The outcome is
joined later, through the token in the job's admin_comment.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta

from gpuwaste.core.codec import Whole, convert

Action = Literal["pass", "annotate", "warn", "reject"]
Mode = Literal["off", "shadow", "annotate", "warn", "reject"]
Op = Literal["submit", "modify"]
RecordedOp = Literal["submit", "modify", "plan"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)  # each is stronger than the one before
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
TOLD: Final[frozenset[Action]] = frozenset({"warn", "reject"})  # the actions that print lines at the user's terminal
ID_LENGTH: Final = 16
MAX_LINES: Final = 3
PLAN_POLICY: Final = "gpuwaste plan"  # with a space: no policy of a site can have this name
START: Final = "start"  # a target of `quantiles`: UTC seconds of the expected start
END: Final = "end"
MAX_LINE: Final = 160  # characters of a line at the user's terminal
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = tuple(first + second for first in _DIGITS for second in _DIGITS)
_RANDOM_BITS: Final = 64  # one system call for all random digits
_TIME_PAIRS: Final = 5  # microseconds until the year 2085
MAX_TEXT: Final = 4096  # characters of any text of a verdict
_MAX_ITEMS: Final = 64
_LARGEST: Final = 1e300  # far above any number of a verdict; JSON allows larger ones
_Text = Annotated[str, Meta(max_length=MAX_TEXT)]
_Texts = Annotated[tuple[_Text, ...], Meta(max_length=_MAX_ITEMS)]
_Numbers = Annotated[Mapping[_Text, Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]], Meta(max_length=_MAX_ITEMS)]


@dataclass(slots=True)
class Verdict:
    """One row of the audit.

    `would_be` is the action without the policy's mode, its budget and everything else that holds back; `action` is the
    one returned. `sampled` is set so that the precision of rejecting can be measured; `triggers` are used to score it.
    """

    id: Annotated[str, Meta(pattern=r"^[0-9a-z]{16}\Z", description="The token gw=ID in the job's AdminComment.")]
    cluster: _Text
    at_utc_us: Annotated[Whole, Meta(description="Time of the submission, UTC microseconds.")]
    op: Annotated[RecordedOp, Meta(description="plan: recorded by `gpuwaste plan --submit`, not by an advisor.")]
    policy: Annotated[_Text, Meta(description="The policy that applied.")]
    mode: Mode
    action: Annotated[Action, Meta(description="The advice that was given.")]
    would_be: Annotated[Action, Meta(description="The action before mode, budget and other limits.")]
    held: Annotated[
        _Text, Meta(description="Why it was held back: shadow, budget, override, random ...; empty: it was not.")
    ] = ""
    sampled: Annotated[bool, Meta(description="A would-be reject that passed at random.")] = False
    campaign: Annotated[_Text, Meta(description="The campaign that holds the policy back; empty: none.")] = ""
    override: Annotated[_Text, Meta(description="The user's reason to override.")] = ""
    user: _Text = ""
    account: _Text = ""
    partition: _Text = ""
    qos: _Text = ""
    name: Annotated[_Text, Meta(description="The job's name.")] = ""
    is_array: bool = False
    het_offset: Annotated[Whole | None, Meta(description="The component of a het job.")] = None
    run_job_id: Annotated[
        Whole | None, Meta(description="The job, if known (a modification); otherwise the token identifies it.")
    ] = None
    gpus: Annotated[Whole, Meta(description="GPUs of the job, over all nodes.")] = 0
    time_limit_s: Annotated[Whole | None, Meta(description="The time limit, seconds.")] = None
    p: Annotated[_Numbers, Meta(description="Probability by target, 0 to 1.")] = field(default_factory=dict)
    quantiles: Annotated[
        Mapping[_Text, _Numbers],
        Meta(max_length=_MAX_ITEMS, description="By target the value by quantile, in the target's unit."),
    ] = field(default_factory=dict)
    triggers: Annotated[
        _Numbers, Meta(description="Targets that led to would_be, with the value that reached the threshold.")
    ] = field(default_factory=dict)
    reasons: Annotated[_Texts, Meta(description="Reasons, with numbers from the user's own jobs.")] = ()
    lines: Annotated[_Texts, Meta(description="The lines that the user got, or would have got.")] = ()
    script: Annotated[_Text, Meta(description="Hash of the full script; empty: none.")] = ""
    model_hash: _Text = ""
    shadow: Annotated[
        Mapping[_Text, _Numbers],
        Meta(
            max_length=_MAX_ITEMS,
            description="Probabilities by bundle hash and target, of bundles that are only compared.",
        ),
    ] = field(default_factory=dict)
    feature_hash: _Text = ""
    latency_us: Annotated[Whole, Meta(description="How long the answer took, microseconds.")] = 0

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as it is sent to the hub and printed by `gpuwaste policy verdicts --json`."""
        return asdict(self)


def verdict_from_json(data: object) -> Verdict:
    """Read a verdict; additions of a newer advisor are ignored. Raises ParseError."""
    return convert(data, Verdict, "verdict")


def new_id(at_utc_us: int) -> str:
    """Return a verdict's id: the instant and six random digits, all of base 36.

    Ids that increase with time let the hub's store find the few of a page without reading all.
    """
    return _base_36(at_utc_us, _TIME_PAIRS) + _base_36(secrets.randbits(_RANDOM_BITS), ID_LENGTH // 2 - _TIME_PAIRS)


def _base_36(number: int, pairs: int) -> str:
    """Return the last digits of a number, two at a time."""
    text = ""
    for _ in range(pairs):
        number, pair = divmod(number, len(_PAIRS))
        text = _PAIRS[pair] + text
    return text


def is_token(value: object) -> bool:
    """Return whether a value is a verdict's id."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-z]{16}", value, re.ASCII) is not None
