"""gpuwaste predict: what it reads and sends, what it prints, a bundle without a hub, and its one-line errors."""

import io
import json
import os
import pwd
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.advice.predict.bundles import manifest_of, probability_graph
from tests.unit.advice.predict.site_of_predict import Run, history
from tests.unit.show.predictions import prediction

from gpuwaste.advice.predict.bundle import our_features
from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.cli.main import main
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.bundle_export import write_files
from gpuwaste.slurm.submit.sbatch import read_submission

SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:a100:4\n#SBATCH -p gpu -t 12:00:00\npython train.py\n"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    """Serve one prediction."""
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/predict": {"predictions": [prediction()]}}
        with (tmp_path / "gpuwaste.toml").open("a") as config:
            config.write('slurm_conf = "/nonexistent"\nslurm_timeout_s = 0.2\n')
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Return the option that names the hub's configuration."""
    return ["--config", str(tmp_path / "gpuwaste.toml")]


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Return the path of a batch script."""
    path = tmp_path / "job.sbatch"
    path.write_text(SCRIPT)
    return str(path)


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def _sent(hub: HubDouble) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = hub.sent[-1]["requests"]
    return requests


def test_a_script_is_sent_as_a_request(
    hub: HubDouble, config: list[str], script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hub gets what sbatch would submit; the answer is printed as text."""
    assert main(["predict", script, *config]) == 0
    (request,) = _sent(hub)
    assert (request["name"], request["gpus"], request["gpu_type"], request["partition"]) == (
        "job.sbatch",
        4,
        "a100",
        "gpu",
    )
    assert (request["time_limit_s"], request["script"]) == (43200, SCRIPT)
    assert "3 of your last 8 jobs named train failed" in capsys.readouterr().out


def test_words_after_two_dashes_are_sbatch_s_own(hub: HubDouble, config: list[str], script: str) -> None:
    """Options before the script count; those after it are the script's."""
    assert main(["predict", *config, "--", "--time=10", "-J", "x", script, "--time=20"]) == 0
    assert (_sent(hub)[0]["time_limit_s"], _sent(hub)[0]["name"]) == (600, "x")


def test_the_environment_counts_as_for_sbatch(
    hub: HubDouble, config: list[str], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SBATCH_TIMELIMIT overrides the script."""
    monkeypatch.setenv("SBATCH_TIMELIMIT", "7")
    assert main(["predict", script, *config]) == 0
    assert _sent(hub)[0]["time_limit_s"] == 420


def test_a_line_to_change_names_where_it_stands(
    hub: HubDouble, config: list[str], script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script's line by number; an option of the command line without #SBATCH; a variable by its name."""
    hub.answers["/v1/predict"]["predictions"][0]["changes"] = [
        {"option": "#SBATCH --time=00:40:00", "text": "shorter", "before": {}, "after": {}},
        {"option": "#SBATCH --gres=gpu:a100:1", "text": "fewer", "before": {}, "after": {}},
    ]
    assert main(["predict", "--json", *config, "--", "-t", "60", script]) == 0
    changes = json.loads(capsys.readouterr().out)["predictions"][0]["changes"]
    assert [change["option"] for change in changes] == ["--time=00:40:00", "#SBATCH --gres=gpu:a100:1"]
    assert [change["text"] for change in changes] == ["shorter (the command line)", "fewer (line 2)"]


def test_what_nobody_said_is_noted_where_slurm_cannot_be_asked(
    hub: HubDouble, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No partition and no limit, and no Slurm: unknown, and said."""
    (tmp_path / "bare.sh").write_text("#!/bin/sh\nsleep 1\n")
    assert main(["predict", str(tmp_path / "bare.sh"), *config]) == 0
    assert "time_limit_s" not in _sent(hub)[0]
    assert "cannot read Slurm's defaults; unset options are unknown" in " ".join(capsys.readouterr().out.split())


def test_json_on_standard_input_is_a_request(
    hub: HubDouble, config: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--json - reads requests and prints the document."""
    _stdin(monkeypatch, json.dumps({"requests": [{"name": "train", "gpus": 2}]}).encode())
    assert main(["predict", "--json", "-", *config]) == 0
    assert (_sent(hub)[0]["name"], _sent(hub)[0]["gpus"]) == ("train", 2)
    assert json.loads(capsys.readouterr().out)["predictions"] == [prediction()]


def test_a_script_on_standard_input_is_a_script(
    hub: HubDouble, config: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As sbatch names it, with --json and without."""
    for words in (["-"], ["--json", "-"]):
        _stdin(monkeypatch, SCRIPT.encode())
        assert main(["predict", *words, *config]) == 0
        assert _sent(hub)[0]["name"] == "sbatch"


def test_a_job_is_asked_of_the_hub(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """--jobs goes as it is; one that may not be read is one line and exit code 3."""
    assert main(["predict", "--jobs", "3_1", *config]) == 0
    assert hub.asked[-1] == ("/v1/predict", {"job": "3_1"})
    hub.answers = {}
    assert main(["predict", "--jobs", "4", *config]) == 3
    assert capsys.readouterr().err == "gpuwaste: job 4: not found, or not visible to you\n"


def test_a_bundle_answers_here_without_a_hub(
    config: list[str], script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real bundle and a real snapshot of history: the model's name, the user's own failures as a reason."""
    user = pwd.getpwuid(os.getuid()).pw_name
    (request,) = read_submission(SCRIPT, user=user, submit=1_750_000_000, name="job.sbatch").requests
    history([Run(Outcome.FAILED)] * 5, request).save(tmp_path / "history")
    features = our_features()
    graph = probability_graph("failure", features.names.index("name_failed_8"), features)
    target = TargetModel("failure", "failure.onnx", thresholds={"warn": 0.5}, rows=9)
    manifest = replace(manifest_of("site-1", features=features), targets=(target,))
    write_files(tmp_path / "bundle", manifest, {"failure.onnx": graph}, features)
    (tmp_path / "gpuwaste.toml").write_text('[common]\nhub_url = "unix:/nonexistent"\n')
    here = ["--model", str(tmp_path / "bundle"), "--history", str(tmp_path / "history")]
    assert main(["predict", script, *here, *config]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Prediction by model site-1" in out
    assert "99 %] above the warn threshold" in out
    assert "5 of your last 5 jobs named job.sbatch failed (fails +49 points)" in out
    assert main(["predict", script, *here[:2], *config]) == 0
    assert "no history.state in the model's directory" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("percent", "code"), [("30", 4), ("32", 0)])
def test_fail_above_compares_the_probability_of_failure(
    hub: HubDouble, config: list[str], script: str, percent: str, code: int
) -> None:
    """31 % is over 30 and not over 32."""
    assert main(["predict", script, "--fail-above", percent, *config]) == code


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ([], 2, "give a batch script"),
        (["FILE", "--jobs", "7"], 2, "give a batch script"),
        (["--jobs", "x"], 2, "expected a job ID such as 7, 3_1 or 4+1"),
        (["/nonexistent/x"], 2, "cannot be read"),
        (["/"], 2, "cannot be read"),
        (["--", "-y", "FILE"], 2, "unknown option -y"),
        (["--", "--image", "img", "FILE"], 2, "if 'img' is its value, write --image=VALUE"),
        (["--", "-t", "5"], 2, "no script"),
        (["FILE", "--history", "x"], 2, "--history without --model"),
        (["FILE", "--model", "/nonexistent"], 1, "/nonexistent"),
        (["/bin/true"], 1, "/bin/true: the script has"),
    ],
)
def test_wrong_use_is_one_line(  # noqa: PLR0917 three of a row, four fixtures
    words: list[str],
    code: int,
    error: str,
    config: list[str],
    hub: HubDouble,
    script: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is wrong, where, and what to do, on one line of stderr."""
    assert main(["predict", *config, *[script if word == "FILE" else word for word in words]]) == code
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1
    assert not hub.sent


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"[]", b"7", b'{"nmae": 1}', b'{"gpus": -1}', b"\xff\xfe"])
def test_wrong_json_is_one_line(
    data: bytes, config: list[str], hub: HubDouble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked of the hub with rubbish."""
    _stdin(monkeypatch, data)
    assert main(["predict", "--json", "-", *config]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not hub.sent


def test_a_broken_script_is_named_with_its_line(
    hub: HubDouble, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line, option."""
    (tmp_path / "x.sh").write_text("#!/bin/sh\n#SBATCH -y\n")
    assert main(["predict", str(tmp_path / "x.sh"), *config]) == 1
    assert "x.sh: line 2: unknown option -y" in capsys.readouterr().err


def test_a_het_script_with_options_of_a_plugin_is_predicted(
    hub: HubDouble, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hub gets what each component asks for with what it takes over, and the reader gets the note."""
    hub.answers = {"/v1/predict": {"predictions": [prediction(), prediction()]}}
    (tmp_path / "x.sh").write_text(
        "#!/bin/sh\n#SBATCH -A proj -t 30 --gres=gpu:2 --container-image=a.sqsh\n"
        "#SBATCH hetjob\n#SBATCH -n4 --container-mounts /data:/data\nsrun hostname\n"
    )
    assert main(["predict", str(tmp_path / "x.sh"), *config]) == 0
    first, second = _sent(hub)
    assert (first["account"], first["time_limit_s"], first["gpus"]) == ("proj", 1800, 2)
    assert (second["account"], second["time_limit_s"], second["gpus"], second["cpus"]) == ("proj", 1800, 0, 4)
    said = " ".join(capsys.readouterr().out.split())
    assert "--container-image (line 2), --container-mounts (line 4); sbatch rejects them unless a SPANK" in said


def test_a_history_that_is_none_is_refused(
    config: list[str], hub: HubDouble, script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--model with a damaged snapshot: one line, whichever of the two is looked at first."""
    (tmp_path / "state").write_bytes(b"rubbish")
    assert main(["predict", script, "--model", str(tmp_path), "--history", str(tmp_path / "state"), *config]) == 1
    assert capsys.readouterr().err.count("\n") == 1
