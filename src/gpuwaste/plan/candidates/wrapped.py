"""Short jobs that follow each other, or many of the same name, as one job: advice whether that gains anything, and why.

Jobs are a chain if they wait for each other: a dependency, an array with one task at a time, or queued jobs of the same
name that wait for another job. It is advice because no option of sbatch merges several jobs into one.
"""

import re
from collections.abc import Iterable
from typing import Final

from gpuwaste.core.units import say_duration, say_percent
from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.outlook import cost_of
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.plan.wrapping import AFTER_END_S, LONGEST_S, MANY, Gain, Way, gain, nearest_share
from gpuwaste.plan.wrapping_study import CHAIN_JOBS, JOB_RUN_S
from gpuwaste.slurm.formats.printed_run import task_count

RANK: Final = 11
_AFTER: Final = re.compile(r"(?:after|singleton)", re.IGNORECASE)
_ONE_AT_A_TIME: Final = re.compile(r"[^%]*%0*1", re.ASCII)


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the advice for a short job that is part of a chain, or one of many."""
    run_s = cost_of(asked).run_s
    if run_s is None or run_s > LONGEST_S:
        return
    if _follows(asked):
        yield _advice(asked, "vertical", "one job for the chain")
    else:
        queued = asked.queued()
        if queued.after:
            yield _advice(asked, "vertical", "one job for the chain")
        elif queued.alone + _tasks(asked) >= MANY:
            yield _advice(asked, "horizontal", "one job for all")


def _advice(asked: PlanRequest, way: Way, title: str) -> RequestCandidate:
    share, idle = asked.fair_share, asked.site.has_idle(asked.partition)
    found = gain(way, share, idle=idle)
    if idle:
        where = "with an idle node"
    else:
        where = "at any fair share" if share is None else f"at fair share {nearest_share(share):g}"
    jobs = f"{CHAIN_JOBS} jobs" if way == "vertical" else f"{MANY} parallel jobs"
    text = (
        f"{found.verdict}: in {found.cases} simulated cases {where}, one job instead of {jobs} of "
        f"{say_duration(JOB_RUN_S)} {_effect(found)} of their run time on average ({100 * found.least:+.1f} % to "
        f"{100 * found.most:+.1f} %) and ended later in {say_percent(found.longer)} of the cases"
    )
    if way == "vertical":
        late = gain(way, share, idle=idle, pause_s=AFTER_END_S)
        text += f"; for jobs submitted {AFTER_END_S} s after the previous end, one job {_effect(late)}"
    return RequestCandidate("wrapped", title, text=text, advice=True)


def _effect(found: Gain) -> str:
    return f"saved {100 * found.mean:.1f} %" if found.mean >= 0 else f"cost {-100 * found.mean:.1f} %"


def _follows(asked: PlanRequest) -> bool:
    dependency, array = (_value(asked, name) for name in ("dependency", "array"))
    return bool(_AFTER.match(dependency)) or bool(_ONE_AT_A_TIME.fullmatch(array))


def _tasks(asked: PlanRequest) -> int:
    array = _value(asked, "array")
    return task_count(f"_[{array}]") if array else 1


def _value(asked: PlanRequest, name: str) -> str:
    given = asked.options.get(name)
    return (given.value or "").strip() if given else ""
