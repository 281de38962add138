"""What a file without a header of sacct -P is, in words that help: other separators, fixed width, another encoding."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import Final

from gpuwaste.slurm.accounting.sacct_file import are_columns

_NAMES = re.compile(r'"?\w{2,40}"?([^\w "%=]{1,8})"?\w{2,40}')
_PAIRS = re.compile(r"JobId=\S{1,40} {1,3}[\w:]{2,40}=")
_JOB_ID = re.compile(r"\bJobID(Raw)?\b", re.IGNORECASE)
_HOW: Final = "write it again with sacct -P (and --delimiter=TEXT where names hold a |)"
_OTHER: Final = "write accounting with sacct -P, or make a CSV file of it and import that with --csv and --mapping"
_SHOWN: Final = 4000


def hint(first: bytes, second: bytes) -> str:
    """Return what the first two lines look like, and what to do."""
    if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "is UTF-16, as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8, or " + _HOW
    text = first.removeprefix(BOM_UTF8)[:_SHOWN].decode("utf-8", "replace").strip()
    if len(text.split()) > 1 and second.strip() and not second.strip(b" -\r\n"):
        return "has columns of fixed width, as sacct prints them without -P, with names cut off: " + _HOW
    if _PAIRS.match(text):
        return f"has pairs JobId=..., as jobcomp/filetxt and scontrol write them, not sacct's columns: {_OTHER}"
    names = _NAMES.match(text)
    if names is not None and are_columns(text.replace('"', "").split(names[1])):
        if _JOB_ID.search(text) is None:
            return f"has a header without JobID and JobIDRaw, which tell the jobs apart: {_HOW}"
        parts = ascii(names[1]) if names[1].isprintable() else f"${names[1]!a}"  # as a shell takes it
        other = "import quoted CSV with --csv and --mapping" if '"' in text else f"say --delimiter {parts}"
        return f"has a header whose columns are parted by {parts}: {other}, or {_HOW}"
    return f"no header line: say its columns with --format, what parts them with --delimiter, or {_HOW}"
