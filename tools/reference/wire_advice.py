"""The part of wire.md on submit plugins and the advisor, from both sides' code."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.advice.submit_frames import HEADER, MAX_REPLY, MAX_REQUEST, VERSION, decode_reply, encode_reply
from gpuwaste.jobs.verdict import ACTIONS, MAX_LINE, MAX_LINES
from tools.reference.markdown import code, table

_COMMON: Final = Path(__file__).parents[2] / "plugins" / "job_submit"

HEAD: Final = {
    "op": "`submit` or `modify`; `ping` (the doctor) is answered with pass and `model`, neither counted nor stored",
    "via": "the plugin: `c` or `lua`",
    "slurm": "the release of Slurm that the plugin was built for",
    "deadline_us": "the plugin's timeout, microseconds from the start of the connection",
    "uid": "uid of the user who submits or modifies",
    "counters": "totals since slurmctld's start, below",
    "job": "the request, below",
}
COUNTERS: Final = {
    "asked": "requests, including this one",
    "answered": "replies that were accepted",
    "missed": "no listener, or no complete reply before the deadline",
    "refused": "invalid replies, and listeners that run as another user",
    "skipped": "no request: the breaker was open",
    "opened": "how often the breaker opened",
    "killed": "no request: the kill switch existed",
    "stale": "replies from a job history that is too old, which count as pass; also counted as answered",
    "oversize": "requests whose script was cut below `script_bytes` to fit",
}
JOB: Final = {
    "user_id": "owner of the job",
    "time_min": "minutes",
    "shared": "0 for `--exclusive`",
    "het_job_offset": "the component of a heterogeneous job, from 0",
    "array_inx": "as given: `0-9%2`",
    "admin_comment": "only if an administrator sets it",
}
RULES: Final = {
    "time_limit": 'minutes, or `"infinite"`',
    "mem_per_node_mb": "`pn_min_memory` of a node; 0: all of it",
    "mem_per_cpu_mb": "`pn_min_memory` of a CPU",
    "begin_time": "UTC second",
    "group_id": "only with `submit`",
    "job_id": "only with `modify`",
    "job_id_str": "only with `modify`, if it contains more than `job_id`: `12_[1-3]`, `12+1`",
    "test_only": "`true` if the command line has `--test-only`; not trustworthy, and not detected in all cases",
    "script_bytes": "length of the script",
    "script_hash": "FNV-1a of 64 bits over the full script, 16 hexadecimal digits; absent over 8 MiB",
    "script": "its first bytes, at most `[plugin] script_bytes` and what fits into the frame",
}
REPLY: Final = {
    "v": f"{VERSION}",
    "id": "the verdict's id, 16 characters of `[0-9a-z]`; anything else is not written to the job",
    "action": ", ".join(code(action) for action in ACTIONS),
    "code": "ESLURM number of a rejection, 2000 to 2999; 0: the plugin's own (ESLURM_ACCOUNTING_POLICY)",
    "msg": f"at most {MAX_LINES} lines of {MAX_LINE} characters; shown with `warn` and `reject`",
    "as_of": "UTC second up to which the advisor knows the history; if absent, the history counts as too old",
    "time_min": "minutes; optional",
}

_FRAME: Final = f"""
On the Unix socket `[advisor] socket`, one request and one reply per connection. A frame is {HEADER.size} bytes of
header, both numbers in network byte order (length of the JSON, u32; version {VERSION}, u16), then JSON: {MAX_REQUEST}
bytes at most for a request, {MAX_REPLY} for a reply.
""".strip()
_TEXTS: Final = """
Strings are cut at 1024 bytes, except the script. A string that is not UTF-8, or that is shorter in base64 than escaped,
is `{"b64": "..."}`. Members that are NULL, NO_VAL or INFINITE in Slurm are absent.
""".strip()
_ANSWER: Final = """
The reply. A plugin accepts exactly these members, each once; any other reply means pass and is counted as refused. An
overloaded advisor may reply before it has read the request.
""".strip()


def section() -> str:
    """Return the section's text, heading included. Raises KeyError for a counter that has no meaning here."""
    reply = encode_reply("0000000000000abc", "warn", ["why", "the option to change"], as_of=1750000000)
    return "\n\n".join(
        [
            "## A submit plugin's request",
            _FRAME,
            table(("member", "meaning"), _rows(HEAD)),
            _TEXTS,
            "`counters`:",
            table(("member", "meaning"), [(code(name), COUNTERS[name]) for name in counters()]),
            "`job` has these members of Slurm's job_desc_msg_t under their own names: "
            + ", ".join(code(name) + (f" ({JOB[name]})" if name in JOB else "") for name in members())
            + "; and:",
            table(("member", "meaning"), _rows(RULES)),
            _ANSWER,
            table(("member", "meaning"), _rows(REPLY)),
            f"```json\n{json.dumps(decode_reply(reply))}\n```",
        ]
    )


def _rows(meanings: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((code(name), meaning) for name, meaning in meanings.items())


def members() -> list[str]:
    """Return the members of job_desc_msg_t that the C plugin sends, from its own list."""
    text = (_COMMON / "c" / "job_fields.h").read_text(encoding="utf-8")
    return re.findall(r"^\tX\((\w+)\)", text, re.MULTILINE)


def counters() -> list[str]:
    """Return the counters, from the client's header."""
    text = (_COMMON / "common" / "gw_client.h").read_text(encoding="utf-8")
    block = text[text.index("typedef struct gw_totals") : text.index("} gw_totals;")]
    return re.findall(r"^\tuint64_t (\w+);", block, re.MULTILINE)
