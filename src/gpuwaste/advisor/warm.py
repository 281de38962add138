"""Before the first answer: everything is done once, so that the first submission waits for nothing."""

import gc
import sys
from datetime import datetime
from typing import Final

from gpuwaste.advisor.judge import Judge
from gpuwaste.policy.facts import Facts
from gpuwaste.policy.spending import NothingSpent
from gpuwaste.predict.expectation import expectations, suggestions
from gpuwaste.predict.own import own_sentences
from gpuwaste.predict.predictor import ALL
from gpuwaste.slurm.job_desc import read_job_desc
from gpuwaste.wire.advice import encode_reply

_SWITCH_S: Final = 2e-5
_ROUNDS: Final = 20
_SCRIPT: Final = "#!/bin/bash\n#SBATCH --gres=gpu:4 --mem=64G\nsrun python train.py\n"


def warm(judge: Judge) -> None:
    """Read, score, explain, decide and encode for nobody. Raises ModelError where the model does not run."""
    known = judge.knowledge
    desc = read_job_desc({"user_id": 0, "name": "warm", "tres_per_node": "gres:gpu:4", "script": _SCRIPT})
    for number in range(_ROUNDS):
        request = desc.request("", 1_700_000_000 + number)
        vector = known.predictor.vector(request)
        said = known.predictor.explained(request, vector, known.predictor.scored(request, vector, ALL))
        proposed = suggestions(known.predictor.changes(request, said))
        expected = expectations(said, own_sentences(known.recall, request))
        facts = Facts(request, datetime(2026, 1, 1), expected=expected, suggestions=proposed)  # noqa: DTZ001 any time
        decision = known.policies.decide(facts, NothingSpent(), lambda: 1.0)
        encode_reply("0" * 16, decision.action, decision.lines)


def prefer_answers() -> None:
    """Keep what would hold an answer up away from it: the collection of garbage, and threads that work long.

    What is there now lives as long as the process and need not be looked at again; the loop collects the rest while
    nobody asks. A thread that computes gives way within 20 us instead of 5 ms.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)
