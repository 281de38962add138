"""Many submitters at once: each job gets its own verdict, and none is lost when the advisor fails meanwhile."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gpuwaste.advice.submit_frames import encode_reply
from tools.matrix.rig import Request, Rig, expect

NAME: Final = "parallel submitters"
JOB_SUBMIT: Final = "gpuwaste"
_SUBMITTERS: Final = 12
_JOBS: Final = 36


def run(rig: Rig) -> None:
    """With an advisor whose token is the job's name, hashed; with a hung one; with garbage."""
    own_verdicts(rig)
    for way in ("hung", "garbage"):
        with rig.faulty(way):
            done = _submit_all(rig)
            expect(len(done) == _JOBS, f"{way}: {len(done)} jobs")


def own_verdicts(rig: Rig) -> None:
    """Each job's token is the one that was given for its name."""
    with rig.advisor(_named) as advisor:
        jobs = _submit_all(rig)
        asked = len(advisor.requests)
    wrong = {name: rig.token(job) for name, job in jobs.items() if rig.token(job) != _token(name)}
    expect(not wrong, f"jobs with another job's verdict or with none: {wrong}")
    expect(asked == _JOBS, f"the advisor was asked {asked} times for {_JOBS} jobs")


def _submit_all(rig: Rig) -> dict[str, int]:
    names = [f"p{number}" for number in range(_JOBS)]
    with ThreadPoolExecutor(_SUBMITTERS) as pool:
        ids = pool.map(lambda name: rig.accepted(f"--job-name={name}", "--hold"), names)
        return dict(zip(names, ids, strict=True))


def _named(request: Request) -> bytes:
    return encode_reply(_token(str(request["job"].get("name", ""))), "pass", as_of=int(time.time()))


def _token(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]
