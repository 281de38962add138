"""Facts of names and scripts: what they are, that they are those of the plain patterns, and that reading is bounded."""

import math
import re
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.advice.predict import text_facts
from gpuwaste.advice.predict.text_facts import MAX_SCRIPT, SCRIPT_FACTS, name_facts, script_facts
from gpuwaste.core.clock import CpuBudget, NotReadError

_COMMENT = re.compile(r"^\s*#[^\n]*$", re.MULTILINE)
_PLAIN = {
    "script_launcher": r"\b(srun|mpirun|mpiexec(?:\.hydra)?|prun)\b",
    "script_python": r"\b(?:python[\d.]*|ipython|jupyter|torchrun|accelerate|deepspeed)\b",
    "script_torchrun": r"\b(?:torchrun|torch\.distributed\.(?:run|launch)|accelerate\s+launch|deepspeed)\b",
    "script_environment": r"\b(?:conda|mamba|micromamba)\s+(?:activate|run)\b|\bmodule\s+(?:load|add)\b|\bml\s+\w"
    r"|bin/activate\b",
    "script_container": r"\b(?:apptainer|singularity|podman|docker|enroot|shifter)\b|--container-image",
}
_OF_ALL = {
    "script_set_e": r"^\s*set\s+-(?:\w*e\w*|o\s+errexit)\b|^#!\S*sh\s+-\w*e",
    "script_retry": r"\b(?:until|retry|max_?retries)\b|\|\|\s*(?:true|:)|scontrol\s+requeue|--requeue\b",
}
_PROCESSES = r"--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus)[=\s]+(\d{1,6})\b"
_WORDS = (
    "\n", " ", "\t", "\r", "\v", "\u2028", "\x1c", "#", "-", "=", ".", "_", "x", "é", "3", "||", "true", ":", "set",
    "-e",
    "-o", "errexit", "#!/bin/sh", "srun", "mpirun", "mpiexec", ".hydra", "prun", "python", "python3.11", "ipython",
    "torchrun", "torch.distributed.run", "accelerate", "launch", "deepspeed", "--nproc_per_node", "--num-gpus", "conda",
    "micromamba", "mamba", "activate", "module", "load", "ml", "bin/activate", "apptainer", "docker",
    "--container-image",
    "until", "retry", "max_retries", "maxretries", "scontrol", "requeue", "--requeue",
)  # fmt: skip


def _plainly(script: str) -> dict[str, float]:
    """Return the facts by the patterns as one would write them down, quadratic ones among them."""
    code = _COMMENT.sub("", script)
    count = re.search(_PROCESSES, code)
    return {
        "script_lines": float(sum(1 for line in code.splitlines() if line.strip())),
        "script_processes": float(count[1]) if count else math.nan,
        **{name: float(re.search(pattern, code) is not None) for name, pattern in _PLAIN.items()},
        **{name: float(re.search(pattern, script, re.MULTILINE) is not None) for name, pattern in _OF_ALL.items()},
    }


@settings(max_examples=examples(1500), deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=14).map("".join) | st.text(max_size=60))
@example("#!/bin/bash -e\n\n \n# srun\n\n  #SBATCH -n1\nset -euo pipefail\nsrun python3 a.py || true\n")
@example("a\n \n\t\n set\n\n -x\n set -o\n errexit")
def test_facts_are_those_of_the_plain_patterns(script: str) -> None:
    """Whatever a script holds, its facts are what the patterns say that a reader would write first."""
    found = dict(zip(SCRIPT_FACTS, script_facts(script), strict=True))
    expected = _plainly(script)
    assert {n: v for n, v in found.items() if v == v} == {n: v for n, v in expected.items() if v == v}  # noqa: PLR0124 NaN
    assert found.keys() == expected.keys()


def test_no_script_says_nothing() -> None:
    """Without a script, and without a name, each fact is NaN."""
    assert all(math.isnan(fact) for fact in (*script_facts(None), *name_facts("")))


def test_what_is_read_of_a_script_is_bounded() -> None:
    """A launcher behind MAX_SCRIPT characters is not seen: no script takes longer than one of that length."""
    assert script_facts("#!/bin/sh\n" + "x" * MAX_SCRIPT + "\nsrun a\n") == script_facts(
        "#!/bin/sh\n" + "x" * MAX_SCRIPT
    )
    assert script_facts("#!/bin/sh\nsrun a\n") != script_facts("#!/bin/sh\na\n")


def test_a_script_beyond_the_budget_is_not_read() -> None:
    """Where the CPU of a question is used up a script is given up, and nothing of it is kept as its facts."""
    script = f"#!/bin/sh\n# {id(object())}\nsrun a\n"
    with pytest.raises(NotReadError, match="takes more than 0 ms of CPU"):
        script_facts(script, CpuBudget(0.0))
    assert dict(zip(SCRIPT_FACTS, script_facts(script), strict=True))["script_launcher"] == 1.0


def test_what_is_kept_of_texts_is_bounded() -> None:
    """A user who submits ever new scripts and names of a megabyte does not make the advisor or the hub grow."""
    for number in range(600):
        script_facts(f"{number}" + "x" * (1 << 20))
        name_facts(f"{number}" + "n" * 4096)
    assert sum(sys.getsizeof(script) for script in text_facts._known) < 6 << 20
    assert all(math.isfinite(fact) for fact in name_facts("n" * 4096))
