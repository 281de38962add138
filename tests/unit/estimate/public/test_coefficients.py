"""The coefficients that are shipped, and their card."""

import json
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest

from gpuwaste.cli.main import main
from gpuwaste.estimate import public
from gpuwaste.estimate.public.coefficients import FILE, shipped
from gpuwaste.slurm.gpu_types import device, devices

MAX_B = 2_000_000


def test_the_file_is_small() -> None:
    """Below 2 MB: coefficients, no measurements."""
    assert 1000 < len(resources.files(public).joinpath(FILE).read_bytes()) < MAX_B


def test_every_source_is_named_with_its_licence() -> None:
    """Title, authors, licence and address of each, and every measured type names its sources."""
    known = shipped()
    for each in known.sources.values():
        assert all((each.title, each.authors, each.licence))
        assert each.url.startswith("https://")
    assert {name for names in known.measured.values() for name in names} == set(known.sources)


def test_every_type_that_it_names_is_in_the_table() -> None:
    """By the table's own names, types with measured steps among the measured ones; families and groups exist."""
    known, families = shipped(), {each.family for each in devices()}
    assert all(device(gpu).name == gpu for gpu in (*known.measured, *known.steps))
    assert set(known.steps) <= {gpu for gpu, names in known.measured.items() if "neusight" in names}
    assert {key.partition(" ")[0] for key in known.watts} <= families
    assert set(known.groups) - {"*"} <= families
    assert set(known.groups.values()) == set(known.products)
    assert {"hbm", "gddr"} <= set(known.bandwidth)
    assert "*" in known.moved


def test_the_less_is_known_the_wider_the_interval() -> None:
    """Measured types, others, half precision, training in it."""
    widths = shipped().widths
    ordered = (widths.measured, widths.unmeasured, widths.half, widths.half_training)
    assert all(one < other for one, other in pairwise(ordered))
    assert widths.tf32 > widths.unmeasured


def test_errors_are_those_of_both_vendors_and_both_modes() -> None:
    """Inference and training, NVIDIA and AMD, and half precision: steps counted, errors and coverage as shares."""
    errors = shipped().errors
    for mode in ("inference", "training"):
        assert {f"FP32 {mode}, NVIDIA", f"FP32 {mode}, AMD", f"half precision {mode}, NVIDIA"} <= set(errors)
    assert all(0 < each.mean < 0.5 and 0.5 < each.inside <= 1 for each in errors.values())


@pytest.mark.parametrize("name", [[], ["public"]])
def test_the_card_is_shown_without_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: list[str]
) -> None:
    """`model show --times` without a bundle, or by name: sources, licences, types and errors, as text and as JSON."""
    words = ["model", "show", *name, "--times", "--models-dir", str(tmp_path)]
    assert main(words) == 0
    text = capsys.readouterr().out
    known = shipped()
    for each in known.sources.values():
        assert f"{each.title}. {each.authors}, {each.licence}. {each.url}" in text
    assert all(f"- {gpu}: " in text for gpu in known.measured)
    case, error = next(iter(known.errors.items()))
    assert f"{case}" in text
    assert f"{100 * error.mean:.1f} %" in text
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["document"], document["basis"]) == ("public-times-card", "public measurements")
    assert document["version"] == known.version
    assert document["widths"]["half"] == known.widths.half
    assert document["errors"][case] == {"steps": error.steps, "mean": error.mean, "inside": error.inside}
    assert document["sources"]["neusight"]["licence"] == "MIT"


def test_another_name_is_no_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle that is not there is an error of one line."""
    assert main(["model", "show", "autumn", "--times", "--models-dir", str(tmp_path)]) != 0
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
