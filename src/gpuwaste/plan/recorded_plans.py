"""POST /v1/plan/submitted: a user records the plan of jobs that they have submitted, as the jobs' verdict.

The record is the user's own statement: it is bounded, shown next to the jobs' outcomes, and decides nothing.
"""

import json
from typing import Final, Self

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.core.fields import Interval
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, LATER, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.core.text import harmless
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.verdict import END, MAX_LINE, PLAN_POLICY, START, Verdict, new_id
from gpuwaste.plan.plan_document import PlansRecorded, SubmittedPlan

_FARTHEST_S: Final = 3660 * DAY_S  # from now: farther than any queue reaches


class RecordedPlans(Part):
    """Records submitted plans; for any thread."""

    def __init__(self, store: VerdictStore, site: ClusterFacts, clock: Clock) -> None:
        self._store, self._site, self._clock = store, site, clock

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(VerdictStore), parts.get(ClusterFacts), parts.get(HostPorts).clock)

    def record(self, scope: Scope, body: bytes) -> PlansRecorded:
        """Record the plan of the caller's own jobs, once for each. Raises Refusal.

        Of several jobs in sequence, the first has the expected start and the last the expected end.
        """
        if not scope.user:
            raise not_found()
        try:
            plan = convert(json.loads(body), SubmittedPlan, "the plan")
        except (ValueError, RecursionError, ParseError) as error:
            raise Refusal(BAD, f"the body: {error}") from error
        now_us = self._clock.utc_us()
        for found in (plan.start, plan.end):
            if found and not 0 <= found.p10 <= found.p50 <= found.p90 <= now_us // 1_000_000 + _FARTHEST_S:
                raise Refusal(BAD, "the plan: expected p10, p50 and p90 as UTC seconds in rising order")
        try:
            cluster = self._site.cluster()
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error
        last = len(plan.jobs) - 1
        rows = [
            _verdict(plan, job, scope.user, cluster, now_us, first=place == 0, last=place == last)
            for place, job in enumerate(plan.jobs)
        ]
        return PlansRecorded(jobs=self._store.add_plans(scope.user, rows))


def _verdict(plan: SubmittedPlan, job: int, user: str, cluster: str, at_us: int, *, first: bool, last: bool) -> Verdict:
    at = at_us // 1_000_000
    expected = {START: plan.start if first else None, END: plan.end if last else None}
    return Verdict(
        id=new_id(at_us),
        cluster=cluster,
        at_utc_us=at_us,
        op="plan",
        policy=PLAN_POLICY,
        mode="annotate",
        action="annotate",
        would_be="annotate",
        user=user,
        partition=plan.partition,
        qos=plan.qos,
        name=plan.name,
        run_job_id=job,
        gpus=plan.gpus,
        time_limit_s=plan.time_limit_s,
        quantiles={name: _levels(found, at) for name, found in expected.items() if found},
        lines=(harmless(f"submitted candidate {plan.candidate} of the plan: {plan.title}")[:MAX_LINE],),
    )


def _levels(found: Interval, at: int) -> dict[str, float]:
    """Return the quantiles; no start is before the submission, even if the plan expected an earlier one."""
    return {"0.1": max(found.p10, at), "0.5": max(found.p50, at), "0.9": max(found.p90, at)}
