"""Before the first answer: everything is done once, so that the first submission waits for nothing."""

import gc
import sys
from typing import Final

from gpuwaste.advice.adviser import Adviser
from gpuwaste.advice.submission import AdviceRequest
from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.slurm.submit.job_desc import read_job_desc

_SWITCH_S: Final = 2e-5
_ROUNDS: Final = 20
_SCRIPT: Final = "#!/bin/bash\n#SBATCH --gres=gpu:4 --mem=64G\nsrun python train.py\n"


def warm(adviser: Adviser) -> None:
    """Read, score, explain, decide and encode for nobody. Raises ModelError where the model does not run."""
    desc = read_job_desc({"user_id": 0, "name": "warm", "tres_per_node": "gres:gpu:4", "script": _SCRIPT})
    for number in range(_ROUNDS):
        asked = AdviceRequest(desc.request("", 1_700_000_000 + number))
        for advice in (adviser.everything(asked), *adviser.advise([asked])):
            encode_reply("0" * 16, advice.decision.reply_action, advice.decision.printed)


def prefer_answers() -> None:
    """Keep what would hold an answer up away from it: the collection of garbage, and threads that work long.

    What is there now lives as long as the process and need not be looked at again; the loop collects the rest while
    nobody asks. A thread that computes gives way within 20 us instead of 5 ms.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)
