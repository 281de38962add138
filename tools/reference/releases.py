"""releases.md, from the declared parts of the product and what `make matrix` recorded last."""

from collections.abc import Callable, Mapping
from typing import Final

from tools.matrix.parts import PARTS, Part
from tools.matrix.parts_run import Cell, read_measured
from tools.matrix.releases import RELEASES
from tools.reference.markdown import code, document, table

_INTRO: Final = """
Which parts of gpuwaste are tested on which release of Slurm. Every test starts the real daemons of that release on
one host and submits real jobs. ✔ and the number of tests: all of them passed.
`python -m tools.matrix --release RELEASE --part PART` runs a cell again and prints it; with `--record
docs/releases-measured.json` and `make docs` it is written to this page. [Releases of Slurm](../how-to/releases.md)
describes the differences between releases.
"""
_Measured = Mapping[tuple[str, str], Cell]
_PYSLURM: Final = """
## pyslurm

Not tested next to a cluster: PyPI has pyslurm 25.11, and no suite of Debian has Slurm 25.11 (22.05, 24.11 and 26.05 are
those of bookworm, trixie and sid). A pyslurm works only with its own release of Slurm.
`tests/contract/test_slurm_contract.py` tests it wherever the installed pyslurm fits the installed Slurm.
"""


def page() -> str:
    """Return the page: the table, the reasons of what has no mark, the tests of each part."""
    measured = read_measured()
    names = [item.name for item in RELEASES]
    rows = [(part.name, *(_cell(measured.get((name, part.name))) for name in names)) for part in PARTS]
    return document(
        "Parts by release of Slurm",
        _INTRO,
        table(("part", *(_release(name, measured) for name in names)), rows),
        *_reasons("Failed", measured, lambda cell: cell.failed),
        *_reasons("Skipped", measured, lambda cell: cell.skipped),
        _PYSLURM,
        "## Tests of each part",
        table(("part", "what is tested", "tests"), [(part.name, part.shows, _tests(part)) for part in PARTS]),
    )


def _release(name: str, measured: _Measured) -> str:
    versions = sorted({cell.slurm for (release, _), cell in measured.items() if release == name})
    return ", ".join(versions) or name


def _cell(cell: Cell | None) -> str:
    return "not run" if cell is None else f"{cell.text}, {cell.seconds} s"


def _reasons(title: str, measured: _Measured, of: Callable[[Cell], Mapping[str, str]]) -> list[str]:
    rows = [
        (item.name, part.name, code(test), reason)
        for item in RELEASES
        for part in PARTS
        if (cell := measured.get((item.name, part.name))) is not None
        for test, reason in of(cell).items()
    ]
    return [f"## {title}", table(("Slurm", "part", "test", "reason"), rows)] if rows else []


def _tests(part: Part) -> str:
    return ", ".join(code(test.removeprefix("tests/").format(release="RELEASE")) for test in part.tests)
