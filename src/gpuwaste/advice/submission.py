"""What an adviser is asked, what is expected of it, and what comes out: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuwaste.advice.policy.declarations import Policy
from gpuwaste.advice.policy.facts import PolicyOutcome
from gpuwaste.advice.predict.prediction import RequestChange, TargetPrediction
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.jobs.verdict import Op
from gpuwaste.slurm.submit.request import JobRequest

if TYPE_CHECKING:
    from gpuwaste.advice.predict.prediction import Prediction
    from gpuwaste.advice.predict.predictor import Vector


@dataclass(slots=True)
class AdviceRequest:
    """One submission with what its request does not say; the site's defaults are filled in by the adviser.

    `groups` are the user's Unix groups. `script` is the hash of the whole batch script, "" where there is none. `stale`
    is an asker that does not know the history of the last while, `unread` a submission whose texts take too much CPU.
    """

    request: JobRequest
    op: Op = "submit"
    groups: frozenset[str] = frozenset()
    script: str = ""
    stale: bool = False
    test_only: bool = False
    unread: bool = False


@dataclass(slots=True)
class Outlook:
    """What is expected of a request: targets, smaller requests, sentences of the user's own runs by target, script."""

    targets: Sequence[TargetPrediction] = ()
    changes: Sequence[RequestChange] = ()
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    script: ScriptSays = "unknown"


@dataclass(slots=True)
class SubmitAdvice:
    """A decision, the request with the site's defaults, the policy that decided, and what it rests on.

    `prediction` is there where everything was asked for; else `outlook` has the targets that the policy uses, and
    `vector` the features that they were scored by, None where none was.
    """

    request: JobRequest
    policy: Policy
    decision: PolicyOutcome
    outlook: Outlook
    prediction: "Prediction | None" = None
    vector: "Vector | None" = None
