"""What goes into the RPMs: which wheels on which hosts, and none that is not the locked one."""

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

from tools.rpm.wheels import ROOT, groups, locked

LAY_OUT = ROOT / "packaging" / "rpm" / "lay_out.py"


def test_compute_nodes_get_no_models_and_no_web_server() -> None:
    """The runtime of all hosts has DuckDB and NVML, and neither the models' libraries nor the web API's."""
    lists = groups()
    assert {"duckdb", "nvidia-ml-py", "psutil", "prometheus-client"} <= lists["runtime"]
    assert not {"numpy", "onnxruntime", "xgboost-cpu", "fastapi", "starlette", "uvicorn"} & lists["runtime"]
    assert {"fastapi", "uvicorn"} <= lists["web"]
    assert lists["sim"] == {"numba", "llvmlite"}
    assert {"numpy", "onnxruntime", "xgboost-cpu", "scikit-learn"} <= lists["onnx"]
    assert lists["lake"] == {"duckdb-extension-ducklake", "duckdb-extension-postgres-scanner"}
    assert lists["lake-s3"] == {"duckdb-extension-httpfs"}


def test_each_wheel_is_in_one_list_and_locked() -> None:
    """No distribution is in two packages, and the lock has the hashes of all."""
    lists = groups()
    names = [name for group in lists.values() for name in group]
    assert len(names) == len(set(names))
    assert all("--hash=sha256:" in locked()[name] for name in names)


def make_wheel(path: Path, name: str) -> None:
    """Write a wheel of one module."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "VALUE = 1\n")


def lay_out(folder: Path) -> subprocess.CompletedProcess[str]:
    """Lay out the wheels of a folder as rpmbuild does."""
    project = '[project]\ndependencies = ["one>=1"]\n[project.optional-dependencies]\nhub = ["two==2"]\n'
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    argv = [sys.executable, "-IB", str(LAY_OUT), "--version", "1", f"--root={folder / 'root'}", "--site=/site"]
    argv += [
        f"--wheels={folder}",
        f"--lists={folder / 'lists'}",
        *(f"--without={group}" for group in ("lake", "lake-s3", "onnx", "sim", "web")),
    ]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_a_changed_wheel_stops_the_build(tmp_path: Path) -> None:
    """A wheel whose hash the lock does not have is not laid out."""
    make_wheel(tmp_path / "one.whl", "one.py")
    (tmp_path / "runtime.list").write_text("one.whl\n", encoding="utf-8")
    (tmp_path / "requirements.lock").write_text("one==1 --hash=sha256:00\n", encoding="utf-8")
    done = lay_out(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "lay_out: one.whl: its hash is not in requirements.lock\n"
    assert not (tmp_path / "lists").exists()


def test_a_wheel_cannot_write_outside(tmp_path: Path) -> None:
    """A wheel with a path that points outside of the directory stops the build, though the lock names it."""
    make_wheel(tmp_path / "one.whl", "../../etc/one.py")
    (tmp_path / "runtime.list").write_text("one.whl\n", encoding="utf-8")
    hashed = subprocess.run(["sha256sum", tmp_path / "one.whl"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "requirements.lock").write_text(f"one==1 --hash=sha256:{hashed.split()[0]}\n", encoding="utf-8")
    done = lay_out(tmp_path)
    assert done.returncode == 1
    assert "leads out of the directory" in done.stderr


def test_the_doctor_can_read_what_is_needed(tmp_path: Path) -> None:
    """The installed distribution names its requirements, with their extras: the doctor looks whether they are there."""
    (tmp_path / "runtime.list").write_text("", encoding="utf-8")
    (tmp_path / "requirements.lock").write_text("", encoding="utf-8")
    done = lay_out(tmp_path)
    assert done.returncode == 0, done.stderr
    (installed,) = metadata.Distribution.discover(path=[str(tmp_path / "root/site")])
    assert installed.requires == ["one>=1", 'two==2; extra == "hub"']


def test_nothing_is_compiled_that_is_checked_against_time(tmp_path: Path) -> None:
    """Compiled files carry a hash that Python does not check, so that two builds give the same."""
    make_wheel(tmp_path / "one.whl", "one.py")
    (tmp_path / "runtime.list").write_text("one.whl\n", encoding="utf-8")
    hashed = subprocess.run(["sha256sum", tmp_path / "one.whl"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "requirements.lock").write_text(f"one==1 --hash=sha256:{hashed.split()[0]}\n", encoding="utf-8")
    done = lay_out(tmp_path)
    assert done.returncode == 0, done.stderr
    (compiled,) = (tmp_path / "root/site/__pycache__").iterdir()
    assert compiled.read_bytes()[4:8] == (1).to_bytes(4, "little")  # PEP 552: hash-based, unchecked
    assert f'"/site/__pycache__/{compiled.name}"' in (tmp_path / "lists/runtime").read_text(encoding="utf-8")
