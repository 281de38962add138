"""From a submission to a verdict: the adviser's decision, charged to the user's day, and the audit's row of it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.advice.adviser import Adviser
from gpuwaste.advice.policy.facts import PolicyOutcome
from gpuwaste.advice.policy.loading import load_policies
from gpuwaste.advice.predict.features import feature_hash
from gpuwaste.advice.submission import AdviceRequest, SubmitAdvice
from gpuwaste.advisor.advisor_models import AdvisorModels
from gpuwaste.advisor.budget_store import BudgetCounts
from gpuwaste.advisor.counters import Counters
from gpuwaste.advisor.shadow_scoring import Question, ShadowScoring
from gpuwaste.advisor.slurm_facts import AdvisorPorts
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.verdict import START, Verdict, new_id
from gpuwaste.slurm.submit.job_desc import JobDesc

_REASONS: Final = 8  # sentences kept in a verdict's row
_ROW_TEXT: Final = 1024  # characters of a text in a verdict's row


@dataclass(slots=True)
class JudgedSubmission:
    """What the adviser is asked, with what the verdict's row keeps besides."""

    desc: JobDesc
    asked: AdviceRequest
    at_utc_us: int
    arrived_us: int  # steady clock
    until_us: int = 0  # when the answer is due


class Judge(Part):
    """Judges submissions, on the loop's thread, where `adviser` is replaced too."""

    def __init__(
        self, cluster: str, adviser: Adviser, accounts: BudgetCounts, clock: Clock, shadow: ShadowScoring | None = None
    ) -> None:
        self.adviser = adviser
        self.shadow = shadow or ShadowScoring(clock)
        self._cluster = cluster
        self._accounts = accounts
        self._clock = clock
        self._features = feature_hash()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor, with policies and models loaded. Raises GpuwasteError."""
        config, ports = parts.get(Config).advisor, parts.get(AdvisorPorts)
        policies = load_policies(Path(config.policies_dir))
        models, accounts = parts.get(AdvisorModels), parts.get(BudgetCounts)
        # Chance lets rejects pass: it draws a sample and keeps no secret.
        chance = random.Random().random  # noqa: S311
        adviser = Adviser(policies, models.predictor(), spending=accounts, chance=chance)
        shadow = ShadowScoring(ports.clock, parts.get(Counters).shadow, share=config.shadow_cpu_pct / 100)
        models.try_out(shadow)
        return cls(ports.cluster, adviser, accounts, ports.clock, shadow)

    def advise_by(self, **changes: Any) -> None:
        """Put another part of the adviser in its place."""
        self.adviser = replace(self.adviser, **changes)

    @property
    def model_hash(self) -> str:
        """The model's hash, "" without a model."""
        return self.adviser.predictor.model_hash if self.adviser.predictor else ""

    def judge(self, submissions: Sequence[JudgedSubmission]) -> list[tuple[Verdict, PolicyOutcome]]:
        """Return verdict and decision of each. Raises ModelError."""
        self._accounts.today(submissions[0].at_utc_us // 1_000_000)
        found = []
        advised = self.adviser.advise([submission.asked for submission in submissions])
        for submission, advice in zip(submissions, advised, strict=True):
            if not submission.asked.test_only:
                self._accounts.charge(advice.request.user, advice.decision)
            found.append((submission, advice))
        shadows = self.shadow.scores([_question(*one) for one in found])
        return [
            (self._row(submission, advice, shadow), advice.decision)
            for (submission, advice), shadow in zip(found, shadows, strict=True)
        ]

    def _row(
        self, submission: JudgedSubmission, advice: SubmitAdvice, shadow: Mapping[str, Mapping[str, float]]
    ) -> Verdict:
        desc, request, decision = submission.desc, advice.request, advice.decision
        said = advice.outlook.targets
        return Verdict(
            id=new_id(submission.at_utc_us),
            cluster=self._cluster,
            at_utc_us=submission.at_utc_us,
            op=submission.asked.op,
            policy=decision.policy,
            mode=decision.mode,
            action=decision.action,
            would_be=decision.would_be,
            held=decision.held,
            sampled=decision.sampled,
            override=decision.override,
            triggers=decision.triggers,
            user=request.user[:_ROW_TEXT],
            account=request.account[:_ROW_TEXT],
            partition=request.partition[:_ROW_TEXT],
            qos=request.qos[:_ROW_TEXT],
            name=request.name[:_ROW_TEXT],
            is_array=request.is_array,
            het_offset=desc.het_offset,
            run_job_id=desc.job_id,
            gpus=request.gpus,
            time_limit_s=request.time_limit_s,
            p={target.target: target.p for target in said if target.p is not None},
            quantiles={target.target: target.quantiles for target in said if target.quantiles} | _start(decision),
            reasons=decision.reasons[:_REASONS],
            lines=(*decision.lines, *decision.notes),
            script=desc.script_hash,
            model_hash=self.model_hash,
            shadow=shadow,
            feature_hash=self._features,
            latency_us=self._clock.mono_us() - submission.arrived_us,
        )


def _question(submission: JudgedSubmission, advice: SubmitAdvice) -> Question:
    """Return what is asked of the models beside; nothing where the verdict is not recorded."""
    said = () if submission.asked.test_only else advice.outlook.targets
    wanted = frozenset(target.target for target in said if target.p is not None)
    return Question(advice.vector, wanted, submission.arrived_us, submission.until_us)


def _start(decision: PolicyOutcome) -> dict[str, Mapping[str, float]]:
    """Return the expected start as quantiles of a verdict, nothing where none is known."""
    if decision.expected_start is None:
        return {}
    first, middle, last = decision.expected_start
    return {START: {"0.1": first, "0.5": middle, "0.9": last}}
