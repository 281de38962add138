"""Dependencies: each pinned, hashed, explained, licensed, and on this disk as it was locked."""

import base64
import hashlib
import re
import subprocess
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from tools.reference.dependencies import LOCK, licence, locked

ROOT = Path(__file__).parents[3]
FREE = re.compile(r"MIT|BSD|Apache|MPL|Mozilla|PSF|Python Software Foundation|Zlib|0BSD", re.IGNORECASE)
HEADER = {"nvidia-nvml-dev"}  # NVIDIA's nvml.h, for tests of the simulated library alone; in no package of ours


def direct() -> set[str]:
    """Return the names that pyproject.toml asks for, in the lock or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = list(project["project"]["dependencies"])
    for group in (*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()):
        asked += [entry for entry in group if isinstance(entry, str)]
    return {re.split(r"[\s\[<>=!~;]", name, maxsplit=1)[0].lower() for name in asked} - {"gpuwaste"}


def test_every_line_of_the_lock_is_a_pin_with_hashes() -> None:
    """No URL, no folder, no other index, no package without a SHA-256: what pip installs is what was looked at."""
    text = LOCK.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    entries = locked()
    assert len(entries) == sum(not line.startswith(" ") for line in lines) > 50
    assert sum(len(entry.hashes) for entry in entries) == sum(line.startswith("    --hash=sha256:") for line in lines)
    assert [entry.name for entry in entries if not entry.hashes] == []
    assert "--require-hashes" in (ROOT / "tools/make-venv").read_text(encoding="utf-8")


def test_each_package_is_there_for_a_reason() -> None:
    """What we ask for has its line in decision 0001; everything else is needed by something that is in the lock."""
    decision = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    names = {entry.name for entry in locked()}
    assert [name for name in sorted(direct()) if not re.search(rf"\b{re.escape(name)}\b", decision)] == []
    for entry in locked():
        needed_by = {word.partition(" ")[0] for word in entry.via}
        assert needed_by, entry.name
        assert needed_by <= names | {"gpuwaste"}, entry.name
        if any(word.startswith("gpuwaste (") for word in entry.via):
            assert entry.name in direct()


def test_each_licence_is_free_and_known() -> None:
    """One of the usual free licences, by the package's own word; the one exception is a header for tests."""
    assert [entry.name for entry in locked() if not FREE.search(licence(entry.name))] == sorted(HEADER)
    spec = (ROOT / "packaging/rpm/gpuwaste.spec").read_text(encoding="utf-8")
    assert not any(name in spec for name in HEADER)


def installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")


def test_what_is_installed_is_what_was_locked() -> None:
    """Each package has the locked version, and each of its files the hash that its RECORD has."""
    checked = 0
    for entry in locked():
        there = installed(entry.name)
        assert there.version == entry.version, entry.name
        for file in there.files or ():
            if file.hash is None or file.hash.mode != "sha256" or file.suffix not in {".py", ".so"}:
                continue
            if file.parts[0] == "..":  # a script, beside the interpreter: pip writes its first line
                continue
            digest = hashlib.sha256(Path(str(file.locate())).read_bytes()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
            checked += 1
    assert checked > 5000


def test_the_audit_fails_where_a_package_cannot_be_looked_up() -> None:
    """tools/audit is sound shell, asks for every locked package, and takes silence for no answer."""
    script = ROOT / "tools" / "audit"
    subprocess.run(["bash", "-n", str(script)], check=True)
    call = script.read_text(encoding="utf-8").splitlines()[-1]
    assert {"--strict", "--require-hashes", "requirements.lock"} <= set(call.split())
