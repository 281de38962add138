"""The page: goals, how it was measured, what carries over, each log's tables, what is lacking."""

from collections.abc import Sequence
from typing import Final

from tools.scorecard.goals import goal_lines
from tools.scorecard.logs import LACKING
from tools.scorecard.part import SEED, Part

_HEAD: Final = """# Scorecard

How good the predictions would have been on public job logs, beside plain methods: written by `make scorecard` from
those logs, never by hand; `make data` fetches some of them. The same tables for any log: `gpuwaste model evaluate
--swf FILE` ([how to read them](how-to/evaluate.md)).

Each log is cut by the order of submission: the first 60 % are learnt from, 10 % are for calibration, thresholds and
first shifts, and the last 30 % are judged, once. The trees are then fitted again on the first 70 % with nothing else
chosen. History holds only jobs that had ended at the submission. No recipe was tuned to a log of its own: all logs have
the same. Intervals are 95 %, bootstrapped by user; the worst decile of users stands beside the mean over users. Seed
{seed}; where seeds are compared, {seed} to {last}. One thread, so that the figures come out again.

The recipe and the features were chosen while figures of the test parts of KTH-SP2, Atlas and the Curie samples were in
sight (about a hundred variants were looked at): differences below .005 there mean nothing. CTC-SP2 and the whole Curie
log were looked at only when the rolling correction was chosen.

## What was aimed at
"""
_WALLTIME: Final = """Rates of under-estimates are over all jobs, not for each: jobs with long limits are missed more
often than the rate says, those with short ones less, and jobs that come to their limit far more often. The worst decile
of users in the tables below shows how far apart they are.
"""
_CARRY: Final = """## What carries over from one log to another

No model of another log is passed off as the site's: what is shipped is a bundle of heuristics, `baseline`, until a site
has trained its own. Each figure is as the model came, then → as it is under the rolling correction. The correction here
begins with the model that was learnt on the first 60 %, so a log's own figures differ a little from the tables below.
"""


def page(parts: Sequence[Part], carried: str, last_seed: int, weekly: str = "") -> str:
    """Return the whole page; the same parts give the same text."""
    lines = [_HEAD.format(seed=SEED, last=last_seed), *goal_lines(list(parts)), "", _WALLTIME]
    lines += [_CARRY, carried]
    lines += [weekly] if weekly else []
    for part in parts:
        lines += [f"## {part.log.name}", ""]
        lines += [f"{part.log.note[0].upper()}{part.log.note[1:]}.", ""] if part.log.note else []
        lines += [f"Exit code 3: `{part.failed}`", ""] if part.failed else [part.text]
        lines += _spread(part)
    lines += ["## What is lacking", "", *(f"{text}\n" for text in LACKING)]
    return "\n".join(lines).rstrip() + "\n"


def _spread(part: Part) -> list[str]:
    """Return the range over seeds of the model's main figures."""
    rows = [
        (name, values)
        for name, values in part.numbers.items()
        if len(values) > 1 and name.split(".", 2)[2].startswith(_MAIN) and "user" not in name and "worst" not in name
    ]
    if not rows:
        return []
    texts = [f"{name.replace('.model.', ' ', 1)} {min(values):.3f} to {max(values):.3f}" for name, values in rows]
    return [f"Over {len(rows[0][1])} seeds: {'; '.join(texts)}.", ""]


_MAIN: Final = ("average_precision", "f1", "recall_at", "ece", "under_rate", "reserved_over_used")
