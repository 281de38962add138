"""Every reader of a user's text takes CPU in proportion to it: scripts, names, comments, submit lines, lists, options.

A new parser or regex that meets such a text gets its line in READERS.
"""

import contextlib
import io
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest
from tests.examples import few
from tests.growth import LARGEST, SHAPES, Read, quadratic

from gpuwaste.act.notify.mail_addresses import is_address
from gpuwaste.advice.policy import user_message as policy_text
from gpuwaste.advice.policy.policy_file import Patterns
from gpuwaste.advice.policy.rules.override import reason_of
from gpuwaste.advice.predict import text_facts
from gpuwaste.advice.predict.request_json import parse_requests, requests_from_json
from gpuwaste.advice.submit_frames import decode_body
from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.clock import UNLIMITED
from gpuwaste.core.errors import UsageError
from gpuwaste.core.logs import one_line
from gpuwaste.core.refusal import Refusal
from gpuwaste.core.text import harmless, masked, storable, words_of
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.estimate.readers import hlo, neutral
from gpuwaste.estimate.readers.hlo_text import without_comments, without_leading
from gpuwaste.jobs.history import history_keys, job_names
from gpuwaste.jobs.verdict import verdict_from_json
from gpuwaste.ledger import finding as gpu_request
from gpuwaste.show import terminal_cells
from gpuwaste.show.charts.labels import lines_of
from gpuwaste.show.machine_formats import csv_rows
from gpuwaste.show.page_words import unbroken
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.requested import request_tres
from gpuwaste.slurm.accounting.sacct_rows import DELIMITER, FIELDS, parse_sacct
from gpuwaste.slurm.accounting.tres_amounts import parse_tres
from gpuwaste.slurm.clients.slurmctld_jobs import parse_job, parse_jobs
from gpuwaste.slurm.formats.gpu_positions import parse_gres, parse_positions, parse_slurmd_g
from gpuwaste.slurm.formats.hostlist import expand, task_text
from gpuwaste.slurm.formats.printed_run import is_interactive, task_count, token_of
from gpuwaste.slurm.formats.slurm_times import parse_cpu_s, parse_time_s
from gpuwaste.slurm.formats.swf_log import read_swf
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions
from gpuwaste.slurm.submit.gpu_items import gpu_items, typed_count
from gpuwaste.slurm.submit.job_desc import read_job_desc
from gpuwaste.slurm.submit.job_request import script_hash
from gpuwaste.slurm.submit.program_tie import script_program, tie_of
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.store.hub.erasure import PersonName

_NOON: Final = datetime(2026, 11, 18, 12, tzinfo=UTC)
_JOB_TEXTS: Final = (
    *("name", "account", "partition", "qos", "comment", "script", "script_hash", "array_inx", "time_limit"),
    *("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "mem_per_tres"),
)
_PATTERNS: Final = Patterns(("*a*1*", "gpu*", "*[a-z]*[0-9]*x", "?*-?*"))
_VERDICT: Final = {
    "id": "0" * 16,
    "action": "pass",
    "would_be": "pass",
    "mode": "warn",
    "op": "submit",
    "cluster": "gw",
}
_SCRIPT: Final = "#!/bin/sh\n#SBATCH --gres=gpu:1\n"


def _body(text: str) -> object:
    body = json.dumps({"requests": [{"name": text[:4096], "script": text}]}).encode()
    with contextlib.suppress(Refusal):
        return parse_requests(body, "alice", 0)
    return None


def _script_program(text: str) -> object:
    with contextlib.suppress(UsageError):
        return script_program(f"{text}\n#GPUWASTE{text}\n#GPUWASTE program={text}")
    return None


def _shown_job(text: str) -> str:
    """Return scontrol's record of a job with the text for its name and its comment."""
    return (
        f"JobId=7 JobName={text}\n   UserId=alice(1000) GroupId=users(100) MCS_label=N/A\n   JobState=RUNNING\n"
        f"   NodeList=gpu1\n   MinCPUsNode=1\n   Comment={text}\n"
    )


def _hlo(text: str) -> list[str]:
    """Return a program with the text in its middle."""
    return f"HloModule p\n\nENTRY main {{\n  a = f32[2] parameter(0)\n{text}\n  ROOT b = f32[2] negate(a)\n}}\n".split(
        "\n"
    )


def _probe(text: str) -> bytes:
    """Return a probe's file with the text for its names and its program."""
    named = text.replace("\udcff", "x")[:200]
    return json.dumps({"gpuwaste_program": 1, "name": named, "source": "jax", "hlo": text, "notes": [named]}).encode()


def _accounted(text: str) -> list[object]:
    """Return what is read of a job of sacct's whose free texts are the text, line ends too."""
    given = {
        "JobIDRaw": "7",
        "JobID": "7",
        "Submit": "1700000000",
        "JobName": text,
        "SubmitLine": text,
        "NodeList": text,
    }
    row = DELIMITER.join(given.get(name, "").encode("utf-8", "surrogateescape") for name in FIELDS)
    return list(parse_sacct(row.splitlines(keepends=True), "gw", FIELDS))


READERS: Final[Mapping[str, Read]] = {
    "script facts": lambda text: list(text_facts._facts(text, UNLIMITED)),
    "name facts": text_facts.name_facts,
    "script hash": script_hash,
    "text hash": history_keys.text_hash,
    "normal name": job_names.normal_name,
    "requests": lambda text: requests_from_json({"name": text, "script": text}),
    "question to the hub": _body,
    "frame to the advisor": lambda text: decode_body(text.encode("utf-8", "surrogateescape")),
    **{f"submission's {name}": lambda text, name=name: read_job_desc({name: text}) for name in _JOB_TEXTS},  # type: ignore[misc]
    "override": reason_of,
    "patterns": _PATTERNS.match,
    "policy's line": policy_text.line,
    "override's reason": masked,
    "cell": lambda text: terminal_cells.fit(harmless(text), 40),
    "cell of a CSV": lambda text: csv_rows(["name"], [{"name": text}]),
    "text that names a user": PersonName("a", ("a.b", "a;a")).erased,
    "number with its unit": unbroken,
    "title of a chart": lambda text: lines_of(text, 300, 13),
    "words of a server": words_of,
    "stored text": storable,
    "submit line": lambda text: gpu_request.gpu_request(JobRecord("gw", 7, 0, submit_line=f"sbatch {text}")),
    "interactive": lambda text: is_interactive(text, ()),
    "admin comment": token_of,
    "program of a comment": lambda text: tie_of(f"gpuwaste:program={text}"),
    "program of a script": _script_program,
    "GPU request": lambda text: list(gpu_items(f"gpu:{text}:1,{text}")),
    "GPUs with a type": lambda text: typed_count(f"{text[:4000]}:1"),
    "scontrol's jobs": lambda text: parse_jobs(_shown_job(text)),
    "scontrol's text": parse_jobs,
    "scontrol's job": lambda text: parse_job(_shown_job(text), 7, text),
    "configuration": lambda text: parse_config(f"ClusterName = gw\nX = {text}\n{text}"),
    "partitions": lambda text: parse_partitions(f"PartitionName={text}\n   {text}"),
    "nodes": lambda text: parse_nodes(f"NodeName=gpu1 {text} RealMemory=1 State=IDLE Comment={text} Gres={text}"),
    "GRES": parse_gres,
    "array's tasks": lambda text: task_count(f"3_[{text}"),
    "GRES of a type": lambda text: parse_gres(f"gpu:{text}:2(IDX:{text})"),
    "positions": parse_positions,
    "TRES": parse_tres,
    "tasks": task_text,
    "tasks in hex": lambda text: task_text("0x" + text),
    "time": parse_time_s,
    "CPU time": parse_cpu_s,
    "duration": parse_duration_s,
    "size": parse_size_b,
    "time of a command": lambda text: parse_time(text, _NOON),
    "old columns of sacct": lambda text: request_tres(
        dict.fromkeys(("ReqCPUS", "ReqMem", "ReqNodes", "ReqGRES"), text)
    ),
    "hostlist": expand,
    "hostlist in brackets": lambda text: expand(f"gpu[{text}]"),
    "accounting": _accounted,
    "verdict": lambda text: verdict_from_json({**_VERDICT, "policy": text, "reasons": [text]}),
    "slurmd -G": lambda text: parse_slurmd_g(f"Gres Name=gpu Count=1 {text}", lambda _: None),
    "SWF": lambda text: list(read_swf(text.encode("utf-8", "surrogateescape").splitlines(keepends=True), "gw")[1]),
    "address": is_address,
    "log line": lambda text: one_line(logging.makeLogRecord({"msg": text})),
    "a script's lines": lambda text: read_submission(_SCRIPT + text.replace("\udcff", "x")),
    "an option of a script": lambda text: read_submission(
        f"#!/bin/sh\n#SBATCH --comment={text}\n".replace("\udcff", "x")
    ),
    "GPUs of a script": lambda text: read_submission(f"#!/bin/sh\n#SBATCH --gpus={text}\n".replace("\udcff", "x")),
    "a program's text": lambda text: hlo.read_text(_hlo(text), "p"),
    "a program's line": lambda text: hlo.read_text(_hlo(f"  v = f32[2] add({text}), {text}"), "p"),
    "a program's comments": lambda text: list(
        without_comments(['"' + text + '" //', f"/* {text}", f'*/ "{text} /* {text}*/'])
    ),
    "a program's first word": lambda text: without_leading(
        f"/* {text} */ // {text}\n/*{text}".encode(errors="replace")
    ),
    "a program's type": lambda text: hlo.read_text(_hlo(f"  v = ({text}) add(a), {text}"), "p"),
    "a probe's program": lambda text: neutral.read(io.BytesIO(_probe(text)), "p"),
    "an option of a command line": lambda text: read_argv([f"--job-name={text}", "--gres", text, text]),
}


@pytest.mark.drawn
@pytest.mark.long
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_is_linear(reader: str) -> None:
    """Four times the text takes about four times the CPU, whatever it is made of."""
    largest = LARGEST // 4 if few() else LARGEST
    found = {shape: quadratic(READERS[reader], make, largest) for shape, make in SHAPES.items()}
    assert {shape: why for shape, why in found.items() if why} == {}


@pytest.mark.long
def test_a_quadratic_reader_is_found() -> None:
    """The measure itself tells a reader that walks its text again for each character."""

    def walks_again(text: str) -> int:
        return sum(text.count("\n", place) for place in range(len(text)))

    assert "characters take" in quadratic(walks_again, SHAPES["newlines"])
    assert quadratic(str.splitlines, SHAPES["newlines"]) == ""
