"""The queries of `gpuwaste predict` (a script as sbatch reads it, a job, JSON), for the hub or a local bundle."""

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from gpuwaste.advice.predict.prediction_types import PredictDocument, RequestChange
from gpuwaste.cli.hub_access import hub_client
from gpuwaste.cli.programs import load_program
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, UsageError
from gpuwaste.core.groups import user_name
from gpuwaste.slurm.clients.client_choice import COMMANDS, client_name, slurm_client
from gpuwaste.slurm.site.site_defaults import SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import MAX_SCRIPT_B, read_submission
from gpuwaste.slurm.submit.sbatch_components import CommandLine, read_argv
from gpuwaste.slurm.submit.sbatch_options import COMMAND_LINE, Given

DEFAULTS_S: Final = 3.0  # a prediction without a site's defaults is better than a late one
_SENT_SCRIPT: Final = 1 << 18  # characters of a script that are sent: features use its beginning
_NO_OPTIONS: Final[Mapping[str, Given]] = {}
_OPTION: Final = re.compile(r"#SBATCH (?:--([\w-]+)|-G)")
_NO_HISTORY: Final = (
    "no history.state in the model's directory: predicted from the request only; give a snapshot with --history"
)


@dataclass(frozen=True, slots=True)
class PredictQuery:
    """Requests with the options that set them, or a job that the hub knows."""

    requests: tuple[JobRequest, ...] = ()
    options: tuple[Mapping[str, Given], ...] = ()
    notes: tuple[str, ...] = ()
    job: str = ""
    folder: Path | None = None
    """The script's; None for standard input, texts and jobs."""


def of_words(config: Config, words: Sequence[str], *, as_json: bool) -> PredictQuery:
    """Read what sbatch would read: options, a script, its arguments; `-` is standard input. Raises UsageError."""
    line = read_argv(words)
    if line.wrap is None and not line.rest:
        raise UsageError("predict: no script: give a batch script, - for standard input, or --wrap=COMMAND after --")
    file = "" if line.wrap is not None else line.rest[0]
    data = _script(file, line.doubtful) if file else b""
    if file == "-" and as_json and not data.startswith(b"#!"):
        from gpuwaste.advice.predict.request_json import requests_from_json

        return PredictQuery(tuple(requests_from_json(_parsed(data), user=_user(), submit=int(time.time()))))
    return _of_submission(config, data, line, file)


def of_text(config: Config, script: str, options: Sequence[str]) -> PredictQuery:
    """Read a batch script that is given as text, with options of sbatch. Raises UsageError."""
    line = read_argv([*options, "-"])
    if tuple(line.rest) != ("-",):
        raise UsageError("predict: options: expected options of sbatch only, the script is given as text")
    return _of_submission(config, script.encode("utf-8", "backslashreplace"), line, "-")


def _of_submission(config: Config, data: bytes, line: CommandLine, file: str) -> PredictQuery:
    name = "sbatch" if file == "-" else Path(file).name
    try:
        read = read_submission(data, line, os.environ, user=_user(), submit=int(time.time()), name=name)
    except UsageError:
        raise
    except GpuwasteError as error:
        raise type(error)(f"{file}: {error}") from error
    requests, notes = _completed(config, read.requests)
    folder = None if file in {"", "-"} else Path(file).parent
    return PredictQuery(requests, read.options, (*read.notes, *notes), folder=folder)


def of_job(config: Config, printed_id: str, *, here: bool) -> PredictQuery:
    """Return a job's request from slurmrestd or pyslurm where one is configured, or where a local bundle is used."""
    if client_name(config) == COMMANDS and not here:
        return PredictQuery(job=printed_id)
    number, _, offset = printed_id.partition("+")
    found = slurm_client(config).request(int(number.partition("_")[0]))
    if not found or (offset and int(offset) >= len(found)):
        raise NoDataError(f"job {printed_id}: not in slurmctld's memory, or not visible to you")
    now = int(time.time())
    asked = [replace(request, submit=now) for request in ([found[int(offset)]] if offset else found)]
    return PredictQuery(tuple({astuple(request): request for request in asked}.values()))  # array tasks are alike


def answer(config: Config, asked: PredictQuery, model: Path | None, history: Path | None) -> list[PredictDocument]:
    """Return the predictions, changes with the place of the option. Raises as predictions_of, and ModelError."""
    found = predictions_of(config, asked) if model is None else _here(asked, model, history)
    return [
        structs.replace(prediction, changes=[_placed(change, options) for change in prediction.changes])
        for prediction, options in zip(found, chain(asked.options, repeat(_NO_OPTIONS)), strict=False)
    ]


def predictions_of(config: Config, asked: PredictQuery) -> list[PredictDocument]:
    """Return the hub's predictions, in sbatch's terms. Raises NoDataError, AuthError, WireError, ParseError."""
    hub = hub_client(config)
    try:
        found = hub.predict_job(asked.job) if asked.job else hub.predict([sent(request) for request in asked.requests])
    except NoDataError:
        what = f"job {asked.job}: not found" if asked.job else f"user {asked.requests[0].user[:40]!r}: no history"
        raise NoDataError(f"{what}, or not visible to you") from None
    return convert(found, list[PredictDocument], "the hub's predictions")


def _here(asked: PredictQuery, model: Path, history: Path | None) -> list[PredictDocument]:
    bundle = load_program(
        "gpuwaste.advice.predict.bundle", "predict", "this host, or leave out --model to use the hub"
    ).load_bundle(model)
    from gpuwaste.advice.predict.corrections import corrections_of, history_beside
    from gpuwaste.advice.predict.predictor import Predictor
    from gpuwaste.jobs.history.history_state import HistoryState

    state = HistoryState.load(history) if history else history_beside(model)
    predictor = Predictor(bundle, state or HistoryState(), corrections_of(bundle))
    found = [predictor.predict(request) for request in asked.requests]
    notes = () if state else (_NO_HISTORY,)
    return [structs.replace(p, notes=[*p.notes, *notes]) for p in found]


def sent(request: JobRequest) -> dict[str, Any]:
    """Return a request as it is sent to the hub: without unset fields, with the beginning of the script."""
    script = request.script
    fields = asdict(replace(request, script=None if script is None else script[:_SENT_SCRIPT]))
    return {name: value for name, value in fields.items() if value not in {None, ""}}  # an older hub knows fewer


def _completed(config: Config, requests: Sequence[JobRequest]) -> tuple[tuple[JobRequest, ...], tuple[str, ...]]:
    """Fill in the partition's defaults where something is not set and Slurm answers."""
    if all(request.partition and request.time_limit_s is not None for request in requests):
        return tuple(requests), ()
    try:
        slurm = slurm_client(config, min(config.common.slurm_timeout_s, DEFAULTS_S))
        site = SiteDefaults.of(slurm.partitions())
    except GpuwasteError:
        return tuple(requests), ("cannot read Slurm's defaults; unset options are unknown",)
    return tuple(site.completed(request) for request in requests), ()


def _placed(change: RequestChange, options: Mapping[str, Given]) -> RequestChange:
    """Add the option's current place to a change; an option of the command line has no #SBATCH before it."""
    found = _OPTION.match(change.option)
    given = options.get(found[1] or "gpus") if found else None
    if given is None:
        return change
    if given.where.startswith("line "):
        return replace(change, text=f"{change.text} ({given.where})")
    line = "" if given.where == COMMAND_LINE else " is set: the command line overrides it"
    return replace(change, option=change.option.removeprefix("#SBATCH "), text=f"{change.text} ({given.where}{line})")


def _script(file: str, doubtful: str | None) -> bytes:
    try:
        return _read(file)
    except UsageError as error:
        if doubtful is None:
            raise
        name = f"--{doubtful[:40]}"
        hint = f"{name} is not an option of sbatch itself; if {file[:40]!r} is its value, write {name}=VALUE"
        raise UsageError(f"{error} ({hint})") from error


def _read(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_SCRIPT_B + 1)
        with Path(file).open("rb") as stream:
            return stream.read(MAX_SCRIPT_B + 1)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}: give a batch script") from error
    except ValueError:
        raise UsageError(f"{file[:80]!r}: not a file name: give a batch script") from None


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"standard input: not JSON: {str(error)[:80]}: give a request in JSON, or a batch script"
        ) from error


def _user() -> str:
    if name := user_name(os.getuid()):
        return name
    raise UsageError(f"uid {os.getuid()} has no name on this host: run this on a login node")
