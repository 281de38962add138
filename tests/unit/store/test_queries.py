"""All queries of the product, read as text."""

import re
from pathlib import Path

import gpuwaste

# row_number() over everything is counted on the way; other functions go to the operator that has the defect.
_OF_ALL = re.compile(r"(\w+)\([^()]*\)(?:\s*FILTER\s*\((?:[^()]|\([^()]*\))*\))?\s*OVER\s*\(\s*\)", re.IGNORECASE)


def test_no_query_counts_over_all_rows_by_a_window() -> None:
    """DuckDB 1.5.5 gives the whole store up where two threads add up `OVER ()` of few rows (its issue 25713)."""
    paths = [path for root in gpuwaste.__path__ for path in Path(root).rglob("*.sql")]
    found = {
        f"{path.parent.parent.name}/{path.name}: {match[0]}"
        for path in paths
        for match in _OF_ALL.finditer(path.read_text(encoding="utf-8"))
        if match[1].lower() != "row_number"
    }
    assert len(paths) > 100
    assert found == set()


def test_the_pattern_finds_such_a_query() -> None:
    """A count with a filter and a nested call over an empty window is found, one with an order is not."""
    assert _OF_ALL.search("count(*) FILTER (NOT coalesce(seen, false)) OVER () AS n")
    assert _OF_ALL.search("sum(x)\n  OVER ( )")
    assert not _OF_ALL.search("count(*) OVER (ORDER BY x)")
