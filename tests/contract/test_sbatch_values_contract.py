"""Texts of --time and --mem drawn at random: taken or refused as by sbatch, and the same amount in the held job.

Negative texts and amounts beyond 2^31 seconds or 2^40 MiB overflow in Slurm, and are not drawn.
"""

import random
import re

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
CASES = 400  # texts of each option
UNLIMITED = 365 * 24 * 60
TIME_SIGNS = "::::----0123456789 .+"
UNITS = (
    "",
    "",
    "",
    "K",
    "M",
    "G",
    "T",
    "k",
    "m",
    "g",
    "KB",
    "MB",
    "Gb",
    "tB",
    "B",
    "b",
    "KiB",
    "P",
    "MM",
    "BK",
    " G",
    ".",
)


def _number(draw: random.Random, digits: int = 3) -> str:
    return "".join(draw.choices("0123456789", k=draw.randrange(1, digits + 1)))


def _changed(draw: random.Random, text: str, signs: str) -> str:
    """Return the text, in half of the cases with a character added, left out or in another's place."""
    if draw.random() < 0.5 or not text:
        return text
    at = draw.randrange(len(text))
    return text[:at] + draw.choice(("", draw.choice(signs))) + text[at + draw.choice((0, 1)) :]


def _time(draw: random.Random) -> str:
    clock = ":".join(_number(draw, 2) for _ in range(draw.randrange(0, 4)))
    text = draw.choice((clock, f"{_number(draw, 2)}-{clock}")) or _number(draw)
    return _changed(draw, text, TIME_SIGNS).lstrip("-")


def _memory(draw: random.Random) -> str:
    text = draw.choice(("", "", "+", " ", "0", "+ ", "++")) + _number(draw, 5) + draw.choice(UNITS)
    return _changed(draw, text, "0123456789kKmMgGtTbB+. ")


def _record(cluster: LoopbackCluster, words: str) -> dict[str, str] | None:
    """Return the held job with such an option, None where sbatch refuses it."""
    argv = ["sbatch", "--parsable", "-H", "-N1", "-n1", words, "--wrap=true"]
    done = cluster.run(argv, "alice", check=False)
    if done.returncode:
        assert "Invalid --" in done.stderr or "configuration is not available" in done.stderr, f"{words}: {done.stderr}"
        return {} if "configuration" in done.stderr else None
    (record,) = cluster.show_job(done.stdout.split(";")[0].strip())
    return record


def _mib(record: dict[str, str]) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MGTP])", record["MinMemoryNode"])
    if found is None:
        return int(record["MinMemoryNode"])
    return round(float(found[1]) * {"M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}[found[2]])


def _minutes(record: dict[str, str]) -> int:
    if record["TimeLimit"] == "UNLIMITED":
        return UNLIMITED
    days, _, clock = record["TimeLimit"].rpartition("-")
    hours, minutes, _ = (int(part) for part in clock.split(":"))
    return int(days or 0) * 1440 + hours * 60 + minutes


def _asked(request: JobRequest, option: str) -> int:
    if option == "--time":
        return UNLIMITED if request.time_limit_s is None else request.time_limit_s // 60
    return (request.mem_b or 0) >> 20


@pytest.mark.parametrize("option", ["--time", "--mem"])
def test_texts_are_read_as_by_sbatch(cluster: LoopbackCluster, draw: random.Random, option: str) -> None:
    """Times and sizes in every form, whole and damaged: refused by both, or the same amount."""
    wrong, taken = [], 0
    texts = dict.fromkeys(_time(draw) if option == "--time" else _memory(draw) for _ in range(CASES))
    for text in texts:
        record = _record(cluster, f"{option}={text}")
        try:
            (request,) = read_submission("#!/bin/sh\n", read_argv([f"{option}={text}", "x"])).requests
        except GpuwasteError as error:
            wrong += [f"{text!r}: sbatch takes it, we refuse: {error}"] if record is not None else []
            continue
        if record is None:
            wrong.append(f"{text!r}: sbatch refuses it, we take it")
        elif record:
            taken += 1
            theirs = _minutes(record) if option == "--time" else _mib(record)
            ours = _asked(request, option)
            if theirs != ours:
                wrong.append(f"{text!r}: sbatch {theirs}, we {ours}")
    cluster.cancel_jobs()
    assert taken > CASES // 8
    assert not wrong, f"{len(wrong)} of {len(texts)}:\n" + "\n".join(wrong[:20])
