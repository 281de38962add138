"""The Grafana boards in etc/grafana: each described in a file here, written by `make docs`."""

from collections.abc import Callable
from typing import Final

from tools.boards import cluster, node

BOARDS: Final[dict[str, Callable[[], str]]] = {
    "etc/grafana/gpuwaste-cluster.json": cluster.board,
    "etc/grafana/gpuwaste-node.json": node.board,
}
"""Path in the repository -> what makes the file's whole text."""
