"""Judge: from a submission to a verdict: the advice, its charge to the user's budgets today, and its audit row."""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.advice.adviser import AdviceRequest, Adviser, SubmitAdvice
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.advice.policy.policy_case import PolicyOutcome, Spent
from gpuwaste.advice.policy.policy_loading import load_policies
from gpuwaste.advice.predict.features import feature_hash
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_models import AdvisorModels, Question, ShadowScoring
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.advisor.verdict_writer import Writer
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.verdict import START, Verdict, new_id
from gpuwaste.slurm.submit.job_desc import JobDesc

_RECOVERED: Final = log_event.info("spool-recovered: {verdicts} verdicts recovered from the spool")
_SPENT_UNKNOWN: Final = log_event.error(
    "budgets-unknown: cannot read what was spent today, budgets of policies begin at zero: {error}",
    "Check `[advisor] state_dir` and its disk.",
)
_REASONS: Final = 8  # sentences kept in a verdict's row
_ROW_TEXT: Final = 1024  # characters of a text in a verdict's row


class BudgetCounts(Part):
    """Counts in memory, on the loop's thread; the outbox keeps them across a restart."""

    def __init__(self) -> None:
        self.standing: Mapping[str, tuple[float, int]] = {}  # policy -> precision and number of jobs behind it
        self.day = ""
        self._spent: Counter[tuple[Spent, str]] = Counter()
        self._checked_s = 0

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return today's counts, including what a killed advisor left in the spool. Raises nothing."""
        outbox, clock, counts = parts.get(VerdictOutbox), parts.get(AdvisorPorts).clock, cls()
        spool = Writer(parts.get(VerdictJournal), outbox, lambda work: work(), clock, every_s=1.0)
        day = outbox.day_of(clock.utc_us())
        try:
            if moved := spool.move():
                _RECOVERED.log(verdicts=moved)
            counts.restore(day, outbox.spent_on(day))
        except StoreError as error:
            _SPENT_UNKNOWN.log(error=error)
        return counts

    def restore(self, day: str, spent: Mapping[tuple[Spent, str], int]) -> None:
        """Continue with the spending of a local date, YYYY-MM-DD."""
        self.day, self._spent = day, Counter(spent)

    def today(self, now_s: int) -> None:
        """Take the time of a submission: at local midnight all counts start again from zero."""
        if now_s == self._checked_s:
            return
        self._checked_s = now_s
        day = time.strftime("%Y-%m-%d", time.localtime(now_s))
        if day != self.day:
            self.day = day
            self._spent.clear()

    def charge(self, user: str, decision: PolicyOutcome) -> None:
        """Count a decision's spending, by the same rule as verdict_outbox.py."""
        if decision.action == "reject":
            self._spent["reject", user] += 1
        if decision.override and decision.held == "override":
            self._spent["override", user] += 1

    def spent(self, kind: Spent, user: str) -> int:
        """Return how many of a kind the user has had today."""
        return self._spent[kind, user]

    def precision(self, policy: str) -> tuple[float, int] | None:
        """Return the hub's last precision of a policy, None where it is unknown."""
        return self.standing.get(policy)


@dataclass(slots=True)
class JudgedSubmission:
    """The input of the adviser, with further fields of the verdict's row."""

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
        # Chance lets some rejects pass: it draws a sample, not a secret.
        chance = random.Random().random  # noqa: S311
        hold_out = parts.get(HoldOut)
        adviser = Adviser(policies, models.predictor(), spending=accounts, chance=chance, hold_out=hold_out)
        shadow = ShadowScoring(ports.clock, parts.get(Counters).shadow, share=config.shadow_cpu_pct / 100)
        models.try_out(shadow)
        return cls(ports.cluster, adviser, accounts, ports.clock, shadow)

    def advise_by(self, **changes: Any) -> None:
        """Replace parts of the adviser."""
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
            campaign=decision.campaign,
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
    """Return the question to the models on trial; nothing where the verdict is not recorded."""
    said = () if submission.asked.test_only else advice.outlook.targets
    wanted = frozenset(target.target for target in said if target.p is not None)
    return Question(advice.vector, wanted, submission.arrived_us, submission.until_us)


def _start(decision: PolicyOutcome) -> dict[str, Mapping[str, float]]:
    """Return the expected start as quantiles of a verdict, nothing where it is unknown."""
    if decision.expected_start is None:
        return {}
    first, middle, last = decision.expected_start
    return {START: {"0.1": first, "0.5": middle, "0.9": last}}
