"""A path, an id or a command that a reader would copy comes out in one piece, however long the folder's name is."""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import running_hub
from tests.unit.advice.predict.bundles import manifest_of
from tests.unit.cli.test_model import graphs_of
from tests.unit.show.documents import one_job, read, report, top

from gpuwaste.advice.predict.bundle import our_features
from gpuwaste.cli.main import build_parser, command_names, main
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.models.bundle_export import write_files
from gpuwaste.show.layout import Look

MARK = "qzq"
"""What no text of ours has: whatever is left of it in an output, after whole paths were removed, was broken."""
LONG = f"{MARK}-a-folder  with-blanks-{MARK}" + f"-and-{MARK}-a-long-name" * 7
MODEL = "a-model-of-the-whole-of-last-summer-2026-06-21-" + "b" * 17


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a name of more than 150 bytes, with hyphens and blanks."""
    path = tmp_path / LONG
    path.mkdir()
    assert len(LONG) > 150
    return path


@pytest.fixture
def config(place: Path) -> str:
    """Return a configuration whose files, directories and sockets are below that folder."""
    (place / "policies.d").mkdir()
    text = "\n".join([
        "[common]", f'hub_url = "unix:{place}/hub.sock"', f'models_dir = "{place}/models"',
        f'run_dir = "{place}/run"', f'slurm_conf = "{place}/slurm.conf"', "slurm_timeout_s = 0.2",
        f'munge_socket = "{place}/munge.sock"',
        "[agent]", f'state_dir = "{place}/agent"', "[hub]", f'state_dir = "{place}/hub"',
        f'node_tokens_file = "{place}/tokens"', f'socket = "{place}/hub.sock"',
        "[advisor]", f'state_dir = "{place}/advisor"', f'socket = "{place}/advisor.sock"',
        f'policies_dir = "{place}/policies.d"', "",
    ])  # fmt: skip
    path = place / "gpuwaste.toml"
    path.write_text(text)
    return str(path)


def bundles(place: Path) -> None:
    """Make a bundle of a long name, and one whose file is cut off."""
    ours = our_features()
    for number, name in enumerate((MODEL, "broken")):
        write_files(place / "models" / name, manifest_of(name, 1000 + number, ours), graphs_of(ours))
    (place / "models" / "broken" / "timeout.onnx").write_bytes(b"cut")


def bad_file(place: Path) -> None:
    (place / "bad.toml").write_text("[advisr]\n")


def policy(place: Path) -> None:
    (place / "policies.d" / "10-odd.toml").write_text("[polcy]\n")


def outlet(place: Path) -> None:
    (place / "hook.toml").write_text('[webhook]\nurl = "h"\n')


def inlet(place: Path) -> None:
    (place / "storage.toml").write_text('[inlet]\n[webhook]\nsecret_file = "' + str(place / "none") + '"\n')


def rule(place: Path) -> None:
    (place / "idle.toml").write_text('where = "ledger.idel_s > 1.0"\n[[do]]\naction = "cancel"\n')


def script(place: Path) -> None:
    (place / "job.sh").write_text("#!/bin/bash\n#SBATCH --time=never\n")


def bad_log(place: Path) -> None:
    (place / "log.swf").write_text("no log\n")
    (place / "sacct.txt").write_text("JobID|State\n1|COMPLETED\n")
    (place / "jobs.csv").write_text("a,b\n")
    (place / "map.toml").write_text("[columns]\njob_id = 'none'\n")


def bad_study(place: Path) -> None:
    (place / "study.toml").write_text("seeds = 'many'\n")


def good_log(place: Path) -> None:
    (place / "log.swf").write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 60 -1 1 7 1 -1 1 1 -1 -1\n")


def jobs(place: Path) -> None:
    fields = "JobID|User|State|Submit|Start|End|AllocTRES|NodeList"
    times = "2026-05-04T10:00:00|2026-05-04T10:00:05|2026-05-04T11:00:00"
    (place / "jobs.txt").write_text(f"{fields}\n7|alice|COMPLETED|{times}|cpu=4,node=1,gres/gpu=1|n1\n")


Prepare = Callable[[Path], None]
CASES: dict[str, tuple[Prepare | None, str]] = {
    "actions": (None, "rules actions"),
    "actions show": (None, "rules actions 0123456789ab"),
    "actor": (bad_file, "actor run --config {place}/bad.toml"),
    "advisor": (bad_file, "advisor run --config {place}/bad.toml"),
    "agent": (None, "agent status"),
    "analyze": (bad_log, "analyze --swf {place}/log.swf"),
    "analyze store": (None, "analyze --store {place}/none"),
    "config": (None, "config check"),
    "config roles": (policy, "config check --role hub --role advisor --role agent"),
    "config show": (None, "config show"),
    "config absent": (None, "config check --config {place}/none.toml"),
    "appeal": (None, "appeal"),
    "appeal job": (None, "appeal 7 --reason x"),
    "keep": (None, "keep 7 --for 4h --reason x"),
    "keep list": (None, "keep"),
    "doctor": (None, "doctor --timeout 3 --role agent --role hub --role advisor"),
    "doctor json": (None, "doctor --timeout 3 --json --role hub"),
    "doctor nagios": (None, "doctor --timeout 3 --nagios --role hub"),
    "events": (None, "events list"),
    "events check": (outlet, "events check {place}/hook.toml"),
    "events none": (None, "events check {place}/none.toml"),
    "events status": (None, "events status"),
    "events check inlet": (inlet, "events check {place}/storage.toml"),
    "effect": (bad_file, "effect --check {place}/bad.toml"),
    "idle": (None, "idle 7"),
    "estimate": (None, "estimate {place}/none.hlo"),
    "export": (None, "export jobstats 7"),
    "evaluate": (bad_log, "model evaluate --swf {place}/log.swf"),
    "rules": (None, "rules list"),
    "rules check": (rule, "rules check {place}/idle.toml"),
    "rules explain": (rule, "rules explain {place}/idle.toml"),
    "rules none": (None, "rules check {place}/none.toml"),
    "rules replay": (None, "rules replay {place}/none.toml"),
    "rules test": (None, "rules explain {place}/none.toml -j 7"),
    "simulate": (bad_log, "simulate run --swf {place}/log.swf"),
    "simulate generate": (bad_log, "simulate generate lublin jobs=5 -o {place}/none/drawn.swf"),
    "simulate week": (bad_log, "simulate generate curie_week --swf {place}/log.swf -o {place}/drawn.swf"),
    "simulate sweep": (bad_study, "simulate sweep {place}/study.toml -o {place}/results"),
    "simulate sweep none": (None, "simulate sweep {place}/none.toml"),
    "simulate engine": (bad_log, "simulate run --swf {place}/log.swf --engine slurmctld -o {place}/log.swf"),
    "simulate machine": (bad_log, "simulate run --swf {place}/log.swf --machine {place}/none.toml"),
    "simulate write": (bad_file, "simulate run --machine {place}/bad.toml --write-machine {place}/out.toml"),
    "simulate html": (good_log, "simulate run --swf {place}/log.swf --html {place}/pages"),
    "simulate keep": (good_log, "simulate run --swf {place}/log.swf --save"),
    "simulate compare": (None, "simulate compare 000000000000 000000000001"),
    "simulate policies": (good_log, "simulate what-if policy --swf {place}/log.swf --policies {place}/none"),
    "history": (bad_log, "history import --sacct {place}/sacct.txt --clusters c --into {place}/h.duckdb"),
    "history csv": (bad_log, "history import --csv-file {place}/jobs.csv --mapping {place}/map.toml"),
    "history status": (None, "history status"),
    "hub": (None, "hub restore {place}/none.tar"),
    "hub backup": (None, "hub backup {place}/out.tar"),
    "hub move": (None, "hub move --to lake"),
    "job": (None, "job 7"),
    "mcp": (bad_file, "mcp --config {place}/bad.toml"),
    "look": (jobs, "look --from {place}/jobs.txt -o {place}/pages"),
    "look none": (None, "look --from {place}/none.txt -o {place}/pages"),
    "model": (bundles, "model list"),
    "model promote": (bundles, "model promote broken"),
    "model show": (bundles, f"model show {MODEL}"),
    "model add": (None, "model add {place}/none"),
    "model none": (None, "model list --models-dir {place}/empty"),
    "model waits": (None, "model list --waits --models-dir {place}/empty"),
    "digest": (None, "digest preview"),
    "notify": (None, "notify off"),
    "now": (None, "now"),
    "plan": (script, "plan {place}/job.sh"),
    "plan none": (None, "plan {place}/none.sh"),
    "plan file": (script, "plan --submit {place}/job.sh"),
    "policy": (policy, "policy check"),
    "policy none": (None, "policy check {place}/none.toml"),
    "policy explain": (script, "policy explain {place}/job.sh"),
    "predict": (script, "predict {place}/job.sh"),
    "predict none": (None, "predict {place}/none.sh"),
    "predict model": (script, "predict --model {place}/models/none {place}/job.sh"),
    "report": (None, "report"),
    "now since": (None, "now --hours 1"),
    "train": (None, "model train"),
    "train waits": (bad_log, "model train --waits --swf {place}/log.swf --models-dir {place}/models"),
    "verdicts": (None, "policy verdicts"),
    "web": (None, "web"),
}  # fmt: skip
NAMES_NO_PATH = {"model show"}


def test_every_command_is_tried() -> None:
    """A new command gets its case."""
    assert {words.split()[0] for _, words in CASES.values()} == set(command_names())


@pytest.mark.parametrize("name", CASES)
def test_no_path_is_broken(
    name: str, place: Path, config: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command names files of a folder with a long name, and nowhere a part of that name alone."""
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("COLUMNS", "60")
    prepare, words = CASES[name]
    if prepare:
        prepare(place)
    argv = [word.replace("{place}", str(place)) for word in words.split()]
    if "--config" not in argv and argv[0] != "look":  # which reads none
        argv += ["--config", config]
    main(argv)
    said = "".join(capfd.readouterr())
    assert MARK not in said.replace(LONG, ""), said
    assert (LONG in said) is (name not in NAMES_NO_PATH), said


@pytest.mark.parametrize("action", ["list", "show"])
def test_a_models_name_can_be_copied(action: str, place: Path, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The name that `promote` takes is printed whole, however long."""
    bundles(place)
    assert main(["model", action, *([MODEL] if action == "show" else []), "--config", config]) == 0
    assert MODEL in capsys.readouterr().out


def test_an_id_is_printed_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job ids, node names and lists of nodes are whole in reports, whatever that does to the columns."""
    job, node, nodes = (
        "123456789012_[1-100000,200000-300000%50]",
        "gpu-node-of-the-long-name-0001",
        "gpu[0001-2000]" * 9,
    )
    document = report()
    document["jobs"][0]["jobid"] = job
    single = one_job()
    single["runs"][0] |= {"jobid": job, "nodes": nodes}
    uuids = ["GPU-5a8f3c1e-0c1d-4a3b-9d2e-0123456789ab", "GPU-77777777-0c1d-4a3b-9d2e-0123456789ab"]
    for device, uuid in zip(single["runs"][0]["devices"], uuids, strict=False):
        device |= {"node": node, "gpu_uuid": uuid}
    for finding in single["findings"]:
        finding["runs"][0]["printed_id"] = job
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/report": document, "/v1/jobs/7": single, "/v1/top": top()}
        where = ["--config", str(tmp_path / "gpuwaste.toml")]
        assert main(["report", *where]) == 0
        assert job in capsys.readouterr().out
        assert main(["job", "7", *where]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in (job, node, nodes))
    assert "~" not in out
    assert re.search(r"^ *GPU-5a8f3c1e ", out, re.MULTILINE), "what NVIDIA's tools take for the whole"


def test_gpus_that_begin_alike_are_named_whole() -> None:
    """The first block of a UUID stands for a GPU where no other one of the job has it."""
    single = one_job()
    devices = single["runs"][0]["devices"]
    uuids = [f"GPU-5a8f3c1e-0c1d-4a3b-9d2e-{number:012x}" for number in range(len(devices))]
    for device, uuid in zip(devices, uuids, strict=True):
        device["gpu_uuid"] = uuid
    assert len(uuids) > 1
    text = job_text(read(single), Look())
    assert all(uuid in text for uuid in uuids)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


def test_no_word_of_help_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a narrow terminal --help wraps between words: an option, a path or a file's name is never parted."""
    monkeypatch.setenv("COLUMNS", "44")
    for parser in parsers(build_parser()):
        shown = set(parser.format_help().split())
        texts = [action.help % {"default": "", "prog": ""} for action in parser._actions if action.help]
        meant = {word for text in (*texts, parser.description or "") for word in text.split()}
        hyphened = {word for word in meant if re.search(r"\w-\w|/", word)}
        assert hyphened <= shown, parser.prog
