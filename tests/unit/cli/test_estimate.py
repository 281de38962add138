"""`gpuwaste estimate`: the answer, its JSON, wrong usage, the probes' text."""

import ast
import json
import re
from pathlib import Path

import pytest
from tests.unit.estimate.programs import PRODUCT

from gpuwaste.cli.main import main
from gpuwaste.slurm.gpu_types import one_of, types_of


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.hlo"
    path.write_text(PRODUCT)
    return path


def test_where_a_program_fits(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text has memory with its range, what it rests on, and each size of the GPU asked for."""
    assert main(["estimate", str(program), "--gpu", "h100,t4"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "56.0 KiB (39.2 KiB to 4.1 MiB) for the arrays of the program" in text
    assert "before compilation" in text
    assert "h100 1g.10gb 9.6 - - - fits" in text
    assert re.search(r"t4 - 14\.6 [\d.]+ [\d.]+ to [\d.]+ - fits", text)
    assert "time on t4: from public FP32 measurements on this GPU type and 7 others" in text


def test_options_before_the_file_and_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has the keys that scripts read; without a calibration the time is from public measurements."""
    assert (
        main(
            ["estimate", "--gpu", "h100", "--json", str(program), "--steps", "100", "--models-dir", str(program.parent)]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["memory_low_b"] < document["memory_b"] < document["memory_high_b"]
    (whole,) = (each for each in document["gpus"] if not each["mig"])
    assert whole["step_low_s"] < document["step_s"] < whole["step_high_s"]
    assert document["run_s"] == pytest.approx(100 * document["step_s"])
    assert document["steps"] == 100
    assert document["refused"] == ""
    assert "this GPU was not measured" in whole["basis"]
    assert document["program"]["flops"] == 524_288


def test_a_name_of_several_types_is_answered_for_all(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """a100 has 40 or 80 GB on two boards: all are listed, a note says so, and no time is given as that of a100."""
    words = ["estimate", str(program), "--gpu", "a100", "--models-dir", str(program.parent), "--json"]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(dict.fromkeys(each["gpu"] for each in document["gpus"])) == [each.name for each in types_of("a100")]
    assert document["notes"][0] == f"--gpu a100 is {one_of(types_of('a100'))}: all are listed"
    assert document["step_s"] is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["estimate"], "give a program"),
        (["estimate", "FILE", "/nowhere/other"], "/nowhere/other: cannot be read"),
        (["estimate", "FILE", *(f"{n}.hlo" for n in range(16))], "17 files: at most 16"),
        (["estimate", "FILE", "--gpu", "h900"], "unknown GPU type; known: p100, p100-pcie, p4"),
        (["estimate", "FILE", "--steps", "0"], "expected a number from 1"),
        (["estimate", "FILE", "--frobnicate"], "unrecognized arguments"),
        (["estimate", "/nowhere/p.hlo"], "/nowhere/p.hlo: cannot be read"),
    ],
)
def test_wrong_usage_is_one_line(
    program: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    """What is wrong is said once, with exit code 2."""
    try:
        code = main([str(program) if word == "FILE" else word for word in words])
    except SystemExit as left:
        code = int(left.code or 0)
    said = capsys.readouterr().err
    assert code == 2
    assert expected in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_probe_is_python_that_needs_its_framework_alone(framework: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The text parses, imports the framework and the standard library, and nothing of ours."""
    assert main(["estimate", "probe", framework]) == 0
    tree = ast.parse(capsys.readouterr().out)
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert framework in imported
    assert imported <= {
        framework,
        "argparse",
        "importlib",
        "json",
        "sys",
        "weakref",
        "contextlib",
        "math",
        "typing",
        "unittest",
    }
