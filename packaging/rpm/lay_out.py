"""Lays out our code and the locked wheels in a build root, compiles them, and writes rpm's list of each package.

    python3 -IB lay_out.py --version V --root BUILDROOT --site /usr/lib/gpuwaste/python --wheels DIR --lists DIR

Runs inside rpmbuild with nothing but the standard library, in the unpacked sources. A wheel whose SHA-256 is not in
requirements.lock stops the build. The compiled files are of the kind that Python does not check against the source, so
that they are the same in each build and nobody writes others beside them.
"""

import argparse
import hashlib
import py_compile
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

OURS: Final = {
    "agent": "agent",
    "hub": "hub",
    "advisor": "advisor",
    "actor": "actor",
    "models": "models",
    "sim": "sim",
    "estimate": "estimate",
}
"""Which package a folder of gpuwaste goes into; every other goes into the common one."""
BASELINE: Final = PurePosixPath("advice/predict/baseline")
OF_HUB: Final = frozenset(
    {
        "sim/__init__.py",
        "sim/document.py",
        "sim/hub_parts.py",
        "sim/kept_simulations.py",
        "sim/simulations_resource.py",
        "sim/templates/simulation.html",
        "sim/templates/simulations.html",
        "estimate/__init__.py",
        "estimate/hub_parts.py",
        "estimate/program_runs_reads.py",
        "estimate/programs_resource.py",
        "estimate/queries/program_runs.sql",
    }
)
"""Files of rooms with a package of their own that a hub without that package needs: they go into the common one."""
WHEELS: Final = {
    "runtime": "runtime", "onnx": "onnx", "sim": "sim", "web": "hub", "lake": "lake", "lake-s3": "lake-s3"
}  # fmt: skip
"""Which package a list of wheels goes into."""
LEFT_OUT: Final = frozenset({"lake", "lake-s3", "onnx", "sim"})
"""Packages that a build without ONNX Runtime or without lakes does not have."""


class Layout:
    """The files of all packages under one directory of the build root."""

    def __init__(self, root: Path, site: PurePosixPath) -> None:
        """`site` is the directory on the installed host."""
        self.root = root
        self.site = site
        self.files: dict[str, set[PurePosixPath]] = {}

    def add(self, package: str, name: PurePosixPath, content: bytes, *, executable: bool = False) -> None:
        """Write a file. Exits where it lies outside, or where another wheel has brought a different one."""
        if name.is_absolute() or ".." in name.parts:
            sys.exit(f"lay_out: {name}: leads out of the directory")
        target = self._path(name)
        if target.exists():
            if target.read_bytes() != content:
                sys.exit(f"lay_out: {name}: two wheels bring it, not the same")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if executable else 0o644)
        self.files.setdefault(package, set()).add(name)

    def _path(self, name: PurePosixPath) -> Path:
        return self.root / self.site.relative_to("/") / name

    def compile(self) -> None:
        """Compile what is ever imported, in one order and one process: the result depends on both.

        What a build can leave out comes last, so that one without it gives the same of the others.
        """
        for package in sorted(self.files, key=lambda name: (name in LEFT_OUT, name)):
            for name in sorted(self.files[package]):
                if name.suffix == ".py" and "tests" not in name.parts:
                    self._compile(package, name)

    def _compile(self, package: str, name: PurePosixPath) -> None:
        cache = name.parent / "__pycache__" / f"{name.stem}.{sys.implementation.cache_tag}.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        try:
            py_compile.compile(
                str(self._path(name)),
                str(self._path(cache)),
                str(self.site / name),
                doraise=True,
                invalidation_mode=mode,
            )
        except py_compile.PyCompileError:
            return  # templates that are no Python yet: some wheels have them
        self._path(cache).chmod(0o644)
        self.files[package].add(cache)

    def write_lists(self, directory: Path) -> None:
        """Write rpm's list of each package: its files, and every folder above them below the site."""
        directory.mkdir(parents=True, exist_ok=True)
        for package, names in self.files.items():
            folders = {parent for name in names for parent in name.parents} - {PurePosixPath()}
            lines = [f'%dir "{self.site / folder}"' for folder in sorted(folders)]
            lines += [f'"{self.site / name}"' for name in sorted(names)]
            (directory / package).write_text("\n".join(lines) + "\n", encoding="utf-8")


def our_files(source: Path) -> Iterator[tuple[str, PurePosixPath, Path]]:
    """Yield (package, name below gpuwaste/, file) of our three roots."""
    for root in ("src", "agent", "models"):
        top = source / root / "gpuwaste"
        for file in sorted(top.rglob("*")):
            name = PurePosixPath(file.relative_to(top))
            if not file.is_file() or "__pycache__" in name.parts:
                continue
            own = "common" if str(name) in OF_HUB else OURS.get(name.parts[0], "common")
            yield ("models" if BASELINE in name.parents else own), name, file


def wheel_files(wheel: Path, locked: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield (name, content) of a wheel's library; its commands are left out. Exits where the lock has another hash."""
    if f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" not in locked:
        sys.exit(f"lay_out: {wheel.name}: its hash is not in requirements.lock")
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = PurePosixPath(entry.filename)
            if not entry.is_dir() and not name.parts[0].endswith(".data"):
                yield name, archive.read(entry)


def metadata(version: str) -> Iterable[tuple[str, str]]:
    """Return the files by which gpuwaste knows its version, and the doctor which packages it needs."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = ["Metadata-Version: 2.1", "Name: gpuwaste", f"Version: {version}"]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    for extra, group in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {needed}; extra == "{extra}"' for needed in group)]
    return (("METADATA", "\n".join(lines) + "\n"), ("INSTALLER", "rpm\n"))


def main() -> None:
    """Lay everything out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--site", type=PurePosixPath, required=True)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--without", action="append", default=[], choices=sorted(WHEELS))
    options = parser.parse_args()
    layout = Layout(options.root, options.site)
    shutil.rmtree(layout.root / options.site.relative_to("/"), ignore_errors=True)
    for package, name, file in our_files(Path.cwd()):
        layout.add(package, PurePosixPath("gpuwaste") / name, file.read_bytes())
    for key, text in metadata(options.version):
        layout.add("common", PurePosixPath(f"gpuwaste-{options.version}.dist-info") / key, text.encode())
    locked = Path("requirements.lock").read_text(encoding="utf-8")
    for group, package in WHEELS.items():
        if group not in options.without:
            for wheel in (options.wheels / f"{group}.list").read_text(encoding="utf-8").split():
                for name, content in wheel_files(options.wheels / wheel, locked):
                    layout.add(package, name, content, executable=".so" in name.suffixes)
    layout.compile()
    layout.write_lists(options.lists)


if __name__ == "__main__":
    main()
