"""dependencies.md, from requirements.lock and what the installed packages say of themselves."""

import re
from importlib.metadata import files, metadata
from pathlib import Path
from typing import Final, NamedTuple

from tools.reference.markdown import code, document, table

LOCK: Final = Path(__file__).parents[2] / "requirements.lock"
_ENTRY: Final = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)((?: ?\\\n    --hash=sha256:[0-9a-f]{64})*)((?:\n    #[^\n]*)*)", re.MULTILINE
)
_VIA: Final = re.compile(r"#\s+(?:via )?([A-Za-z0-9._ ()/:-]+)")
_OURS: Final = re.compile(r"gpuwaste \(pyproject\.toml(?::(\w+))?\)")
_LONG: Final = 40  # a whole licence's text stands in the field of some


class Locked(NamedTuple):
    """One entry of the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    via: tuple[str, ...]  # what needs it: packages, and gpuwaste itself


def locked(text: str | None = None) -> list[Locked]:
    """Return the lock's entries."""
    found = []
    for match in _ENTRY.finditer(LOCK.read_text(encoding="utf-8") if text is None else text):
        via = [word.strip() for word in _VIA.findall(match[4]) if word.strip() != "via"]
        hashes = re.findall(r"sha256:([0-9a-f]{64})", match[3])
        found.append(Locked(match[1], match[2], tuple(hashes), tuple(via)))
    return found


_MIT: Final = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"


def licence(name: str) -> str:
    """Return a package's licence as it says: an SPDX expression, the classifiers' words, or its field's first words.

    Where its metadata do not say, it is the title of its licence's file. A field with the words of the MIT licence,
    which have no title, is MIT.
    """
    said = metadata(name)
    if "License-Expression" in said:
        return said["License-Expression"]
    words = [str(line).rpartition(" :: ")[2] for line in said.get_all("Classifier") or () if line.startswith("License")]
    words = [word for word in words if word not in {"OSI Approved", "DFSG approved"}]
    field = " ".join(said["License"].split()) if "License" in said else ""
    if not words and _MIT in field:
        return "MIT"
    return ", ".join(words) or (field if len(field) <= _LONG else field[:_LONG] + "...") or _title(name) or "not said"


def _title(name: str) -> str:
    """Return the first words of a package's licence file, empty where it has none."""
    for file in files(name) or ():
        if file.name.startswith(("LICENSE", "LICENCE", "COPYING")):
            lines = Path(str(file.locate())).read_text(encoding="utf-8", errors="replace").splitlines()
            return next((line.strip()[:_LONG] for line in lines if line.strip()), "")
    return ""


def page() -> str:
    """Return the page."""
    rows = [(code(entry.name), entry.version, licence(entry.name), _needed_by(entry)) for entry in locked()]
    return document(
        "Dependencies",
        "Every package of requirements.lock, with the licence that it gives and what needs it. Each is pinned to one\n"
        "version and to the SHA-256 of its files; why we need those that we name ourselves is in\n"
        "[decision 0001](../decisions/0001-dependencies.md). `make audit` asks for known weaknesses.",
        table(("package", "version", "licence", "needed by"), rows),
    )


def _needed_by(entry: Locked) -> str:
    ours = [match for word in entry.via if (match := _OURS.fullmatch(word))]
    groups = ["gpuwaste" + (f" ({match[1]})" if match[1] else "") for match in ours]
    return ", ".join([*groups, *(word for word in entry.via if not _OURS.fullmatch(word))])
