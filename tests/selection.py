"""Which part of `make test` and `make test-all` runs a test: each test is in exactly one, by its folder and its marks.

tests/conftest.py marks each test with its part, and `pytest -m PART` runs that part. A new test that needs no cluster
is in `make test`, any other in `make test-all`, until its author marks it.
"""

from collections.abc import Collection
from typing import Final

ANYWHERE: Final = ("unit", "integration", "docs", "contract")
"""Folders of tests that run on any host but for those marked `cluster`; tools/odd-host runs them."""


def part_of(folder: str, marks: Collection[str]) -> str:
    """Return the part that runs a test of a folder of tests/ with these marks of its author's.

    Of the tests that run anywhere `make test` has all but the long ones; of the others, what is marked `core`.
    """
    if folder in ANYWHERE and "cluster" not in marks:
        return "rest_anywhere" if "long" in marks else "core_anywhere"
    if "quiet" in marks:
        return "rest_demo"
    return "core_clusters" if "core" in marks else "rest_clusters"
