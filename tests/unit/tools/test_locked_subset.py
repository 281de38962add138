"""The packages of the short demo: a part of the lock, complete, with the lock's own hashes."""

import re
import tomllib

import pytest
from tools.locked_subset import ROOT, demo_packages, name_of, required_by

LOCK = """\
duckdb==1.5.5 \\
    --hash=sha256:aa
    # via gpuwaste (pyproject.toml)
editables==0.6 \\
    --hash=sha256:bb
    # via gpuwaste (pyproject.toml:dev)
fastapi==0.165.0 \\
    --hash=sha256:cc
    # via
    #   gpuwaste (pyproject.toml)
    #   mcp
hatchling==1.33.0 \\
    --hash=sha256:dd
    # via gpuwaste (pyproject.toml:dev)
nvidia-nvml-dev==13.5 \\
    --hash=sha256:ee
    # via gpuwaste (pyproject.toml:dev)
optuna==4.1 \\
    --hash=sha256:ff
    # via gpuwaste (pyproject.toml)
starlette==1.10.0 \\
    --hash=sha256:00
    # via
    #   fastapi
    #   mcp
anyio==4.16.0 \\
    --hash=sha256:11
    # via starlette
"""
PROJECT = {"dependencies": ["DuckDB==1.5.5"], "optional-dependencies": {"hub": ["fastapi>=0.1"], "predict": []}}


def test_what_is_needed_brings_what_it_requires() -> None:
    """Dependencies, the extras and the tools are there with all that they require; another extra's are not."""
    names = [name_of(entry) for entry in demo_packages(PROJECT, LOCK)]
    assert names == ["duckdb", "editables", "fastapi", "hatchling", "nvidia-nvml-dev", "starlette", "anyio"]
    assert "".join(demo_packages(PROJECT, LOCK)) == re.sub(r"optuna(?s:.*?)(?=starlette)", "", LOCK)


def test_a_package_that_the_lock_lacks_is_named() -> None:
    """A lock that is older than pyproject.toml is an error that names the package."""
    with pytest.raises(ValueError, match=r"requirements\.lock: lacks msgspec"):
        demo_packages({**PROJECT, "dependencies": ["msgspec>=0.20"]}, LOCK)


def test_the_part_of_this_lock_is_complete() -> None:
    """Of the checkout's lock, each entry has hashes, what an entry requires is there, and training is not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = {name_of(entry): entry for entry in demo_packages(project, lock)}
    assert all("--hash=sha256:" in entry for entry in entries.values())
    everything = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    lacking = [name_of(entry) for entry in everything if required_by(entry) & entries.keys()]
    assert set(lacking) <= entries.keys()
    assert {"fastapi", "pydantic", "onnxruntime", "tabulate"} <= entries.keys()
    assert not {"xgboost-cpu", "pytest", "playwright"} & entries.keys()
    assert len(entries) < 50
