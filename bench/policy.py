"""Figure: microseconds of a policy's decision, and submissions per second of `gpuwaste policy replay`, of CPU time.

Prints a table and one line of JSON. Decisions are those of a set of ten policies of which the last one judges; the
replay is of a made table with the history alone, in this process.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from datetime import datetime

from gpuwaste.advice.adviser import NothingSpent
from gpuwaste.advice.policy.expected_waits import WaitRow, WaitTable
from gpuwaste.advice.policy.policy_case import Expectation, SubmissionFacts, Suggestion
from gpuwaste.advice.policy.policy_loading import built_in, policy_from_toml
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.models.policy_backtest import ReplayPeriod, replay_policies
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_table

POLICY = """
[policy]
name = "p{0}"
mode = "reject"
[when]
partitions = ["gpu{0}*"]
users = ["a*", "b*"]
hours = "08:00-18:00"
[targets.failure]
warn = 0.6
reject = 0.9
[targets.gpus]
warn = 0.75
"""
REQUEST = JobRequest("alice", 1_800_000_000, partition="gpu9", name="train", time_limit_s=36000, gpus=4)
QUIET = SubmissionFacts(
    REQUEST,
    local_time=datetime(2026, 11, 18, 12),  # noqa: DTZ001 the site's own time
    script="same",
    expected=(
        Expectation("failure", "site model", 9000, p=0.1),
        Expectation("gpu_underused", "site model", 9000, p=0.1),
    ),
)
LOUD = replace(
    QUIET,
    expected=(
        Expectation("failure", "site model", 9000, p=0.97, why=("6 of your last 8 jobs named train failed",)),
        Expectation("gpus_needed", "history", 14, quantiles={"0.5": 1.0}),
    ),
    suggestions=(
        Suggestion("gpus", "#SBATCH --gres=gpu:1", "your last 14 such jobs worked on at most 1 of 4 GPUs", 3.0),
    ),
)

STARTS = """
[policy]
name = "starts"
mode = "warn"
[expected_start]
"""
WAITS = WaitTable(
    REQUEST.submit - 60,
    tuple(
        WaitRow(partition=f"gpu{p}", gpu_type=t, gpus=1 << g, limit_s=7200 << h, p10=h, p50=600 * h, p90=7200 * h)
        for p in range(12) for t in ("", "a100") for g in range(4) for h in range(5)
    ),
)  # fmt: skip


def decision_us(policies: PolicySet, facts: SubmissionFacts, count: int, rounds: int) -> list[float]:
    """Return the mean microseconds of CPU time of a decision, of each round."""
    found = []
    spending = NothingSpent()
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(count):
            policies.decide(facts, spending, lambda: 0.5)
        found.append((time.process_time() - began) / count * 1e6)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    read = [policy_from_toml(POLICY.format(number).encode(), f"{number}.toml") for number in range(10)]
    policies = PolicySet((*read, built_in()), "")
    quiet = decision_us(policies, QUIET, 20_000, options.rounds)
    loud = decision_us(policies, LOUD, 20_000, options.rounds)
    quick = PolicySet((policy_from_toml(STARTS.encode(), "starts.toml"), built_in()), "")
    no_start = decision_us(quick, QUIET, 20_000, options.rounds)
    start = decision_us(quick, replace(QUIET, waits=WAITS), 20_000, options.rounds)
    table = made_table(options.jobs, users=200)
    began = time.process_time()
    document = replay_policies(table, PolicySet((built_in(),), ""), ReplayPeriod(0, 1 << 40))
    per_s = document["submissions"] / (time.process_time() - began)
    rows = {"decision, nothing to say": quiet, "decision, a reject with its lines": loud}
    rows |= {"one policy, no waits from the hub": no_start, "one policy, with the expected start": start}
    for name, values in rows.items():
        print(f"{name:<36}{statistics.median(values):8.1f} us  ({min(values):.1f} to {max(values):.1f})")
    print(f"{'replay, history alone':<36}{per_s:8.0f} submissions/s of {document['submissions']}")
    print(
        json.dumps(
            {"quiet_us": quiet, "reject_us": loud, "no_start_us": no_start, "start_us": start, "replay_per_s": per_s}
        )
    )


if __name__ == "__main__":
    main()
