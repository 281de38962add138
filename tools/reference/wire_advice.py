"""The part of wire.md on submit plugins and the advisor, from both sides' code."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.core.verdict import ACTIONS, MAX_LINE, MAX_LINES
from gpuwaste.wire.advice import HEADER, MAX_REPLY, MAX_REQUEST, VERSION, decode_reply, encode_reply
from tools.reference.markdown import code, table

_COMMON: Final = Path(__file__).parents[2] / "plugins" / "job_submit"

HEAD: Final = {
    "op": "`submit` or `modify`; a `ping`, the doctor's, is answered with pass and `model`; it is not counted or kept",
    "via": "`c` or `lua`: which plugin asks",
    "slurm": "the release that the plugin is built for",
    "deadline_us": "how long the plugin waits, microseconds from the moment it connects",
    "uid": "who submits or modifies",
    "counters": "totals since slurmctld's start, below",
    "job": "the request, below",
}
COUNTERS: Final = {
    "asked": "questions, this one among them",
    "answered": "replies that were taken",
    "missed": "nobody there, or no whole reply within the deadline",
    "refused": "replies of another form, and sockets of another user's process",
    "skipped": "not asked: the breaker is open",
    "opened": "openings of the breaker",
    "killed": "not asked: the kill switch is there",
    "stale": "replies on too old a history, taken for pass; they are among the answered",
    "oversize": "questions whose script was cut below `script_bytes` to fit",
}
JOB: Final = {
    "user_id": "whose job it is",
    "time_min": "minutes",
    "shared": "0 for `--exclusive`",
    "het_job_offset": "the component of a heterogeneous job, from 0",
    "array_inx": "as given: `0-9%2`",
    "admin_comment": "only where an administrator sets it",
}
RULES: Final = {
    "time_limit": 'minutes, or `"infinite"`',
    "mem_per_node_mb": "`pn_min_memory` of a node; 0: all of it",
    "mem_per_cpu_mb": "`pn_min_memory` of a CPU",
    "begin_time": "UTC second",
    "group_id": "`submit` alone",
    "job_id": "`modify` alone",
    "job_id_str": "`modify` alone, where it says more than `job_id`: `12_[1-3]`, `12+1`",
    "test_only": "`true` where the command line says `--test-only`; the user's word, and not seen in all cases",
    "script_bytes": "length of the whole script",
    "script_hash": "FNV-1a of 64 bits over the whole script, 16 hexadecimal digits; absent over 8 MiB",
    "script": "its first bytes, at most `[plugin] script_bytes` and what the frame has left",
}
REPLY: Final = {
    "v": f"{VERSION}",
    "id": "the verdict's id, 16 characters of `[0-9a-z]`; anything else is not written to the job",
    "action": ", ".join(code(action) for action in ACTIONS),
    "code": "ESLURM number of a rejection, 2000 to 2999; 0: the plugin's own (ESLURM_ACCOUNTING_POLICY)",
    "msg": f"at most {MAX_LINES} lines of {MAX_LINE} characters; shown with `warn` and `reject`",
    "as_of": "UTC second up to which the advisor knows the history; may be absent, which is older than any limit",
    "time_min": "minutes; may be absent",
}

_FRAME: Final = f"""
On the Unix socket `[advisor] socket`, one question and one answer a connection. A frame is {HEADER.size} bytes of
header, both numbers in network byte order (length of the JSON, u32; version {VERSION}, u16), then JSON: {MAX_REQUEST}
bytes at most for a question, {MAX_REPLY} for a reply.
""".strip()
_TEXTS: Final = """
A text is cut at 1024 bytes, the script apart. One that is not UTF-8 is `{"b64": "..."}`, and so is one that would be
longer escaped than in base64. What is NULL, NO_VAL or INFINITE is absent.
""".strip()
_ANSWER: Final = """
The reply. A plugin takes exactly these members, each once; whatever else comes means pass and is counted as refused.
An advisor that is behind may answer before it has read the question.
""".strip()


def section() -> str:
    """Return the section's text, heading included. Raises KeyError for a counter that has no meaning here."""
    reply = encode_reply("0000000000000abc", "warn", ["why", "the option to change"], as_of=1750000000)
    return "\n\n".join(
        [
            "## A submit plugin's question",
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
