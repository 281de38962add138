"""Weights by TRES are read in one way, that of slurmctld, by whoever reads them."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuwaste.slurm
from gpuwaste.core.errors import ParseError
from gpuwaste.sim.assoc_limits import tres_row
from gpuwaste.sim.fair_tree import billing as billing_of_all
from gpuwaste.sim.multifactor import priority_settings
from gpuwaste.slurm.accounting.tres_amounts import billing, parse_weights, weights_text
from gpuwaste.slurm.site.site_fields import parse_partitions

MIB = 2**20


def _of_partition(text: str) -> Mapping[str, float] | None:
    (found,) = parse_partitions(f"PartitionName=p\n   OverSubscribe=NO\n   TRESBillingWeights={text}\n")
    return found.billing_weights


def _of_priority(text: str) -> Mapping[str, float]:
    return priority_settings({"PriorityWeightTRES": text}).weight_tres


READERS: tuple[Callable[[str], Mapping[str, float] | None], ...] = (parse_weights, _of_partition, _of_priority)
CASES = {
    "CPU=1.0,Mem=0.25G,GRES/gpu=16.0": {"cpu": 1.0, "mem": 0.25 / 2**30, "gres/gpu": 16.0},
    "GRES/gpu:A100=8": {"gres/gpu:A100": 8.0},
    "CPU=1K": {"cpu": 1 / 1024},
    "GRES/gpu=2M": {"gres/gpu": 2 / MIB},
    "Mem=1": {"mem": 1 / MIB},
    "Mem=1K": {"mem": 1 / MIB},
    "Mem=1M": {"mem": 1 / MIB},
    "Mem=0.5TB": {"mem": 0.5 / 2**40},
    "cpu=2e3": {"cpu": 2000.0},
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", CASES)
def test_every_reader_has_the_same_weights(reader: Callable[[str], Mapping[str, float] | None], text: str) -> None:
    """Plans, machines and priorities read a list of weights as slurmctld does; K and M of memory are MiB there."""
    assert reader(text) == CASES[text]


@pytest.mark.parametrize("text", ["CPU=x", "CPU", "=1", "CPU=-1", "CPU=nan", "Mem=1Q", "CPU=1,Mem=", "CPU=" + "9" * 30])
def test_a_list_that_slurmctld_would_refuse_is_refused(text: str) -> None:
    """One bad item makes the list worthless; a plan then knows no bill, and does not bill CPUs instead."""
    with pytest.raises(ParseError, match="expected TRES=WEIGHT"):
        parse_weights(text)
    assert _of_partition(text) is None


def test_names_are_billed_in_any_case() -> None:
    """A job's gres/gpu:a100 has the weight of GRES/gpu:A100."""
    assert billing(parse_weights("GRES/gpu:A100=8"), {"cpu": 4, "gres/gpu": 2, "gres/gpu:a100": 2}) == 16.0


def test_the_largest_of_a_node_and_the_sum_of_others() -> None:
    """MAX_TRES takes the largest of cpu, mem, node and gres and adds what is of no node, such as licenses."""
    weights = parse_weights("CPU=1,GRES/gpu=16,License/matlab=100,Billing=5")
    held = {"cpu": 4, "gres/gpu": 2, "license/matlab": 1, "billing": 7}
    assert billing(weights, held) == 136.0
    assert billing(weights, held, largest=True) == 132.0


@given(st.booleans(), st.lists(st.integers(0, 999), min_size=5, max_size=5), st.lists(st.integers(0, 99), min_size=5))
def test_simulated_jobs_are_billed_as_planned_ones(largest: bool, amounts: list[int], each: list[int]) -> None:
    """The simulator's bill of many jobs, in arrays, is that of each."""
    names = ("cpu", "mem", "node", "billing", "gres/gpu")
    weights = {name: float(weight) for name, weight in zip(names, each, strict=False)}
    rows = np.array([amounts], dtype=np.float64)
    found = billing_of_all(rows, tres_row(names, weights), max_tres=largest)
    assert found.tolist() == [billing(weights, dict(zip(names, amounts, strict=True)), largest=largest)]


@given(st.dictionaries(st.sampled_from(("cpu", "mem", "gres/gpu:A100")), st.floats(0, 1e6).map(lambda x: x / 2**30)))
def test_written_weights_are_read_back(weights: dict[str, float]) -> None:
    """Whatever weights a model has, their text gives them again."""
    assert parse_weights(weights_text(weights)) == weights


@given(st.text(alphabet=st.sampled_from("CPUMem=/:,.0123456789eKG\n-+ "), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other error comes out, and no weight is negative or infinite."""
    with suppress(ParseError):
        assert all(0 <= weight < float("inf") for weight in parse_weights(text).values())


def test_no_other_module_reads_weights() -> None:
    """tres_amounts.py is the one reader: the others call it."""
    root = Path(next(iter(gpuwaste.slurm.__path__))).parent
    reader = re.compile(r"^def \w*weights\w*\(text", re.MULTILINE)
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if reader.search(path.read_text())}
    assert found == {"slurm/accounting/tres_amounts.py"}
