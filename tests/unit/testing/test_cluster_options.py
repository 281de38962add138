"""Options and layout of a loopback cluster, without starting one."""

from pathlib import Path

import pytest

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_cli import main
from gpuwaste.testing.cluster_options import Layout, Variant
from gpuwaste.testing.cluster_process import ClusterError


def _layout(directory: Path, variant: Variant) -> Layout:
    return Layout(directory, "id", variant, (20001, 20002, 20003, 20004, 20005, 20006))


def test_the_shell_s_words_make_a_variant() -> None:
    """Flags, numbers, texts, script lists and device orders are read from KEY[=VALUE] words."""
    words = ["private-data", "shards=4", "node_prefix=x", "prolog=/a,/b", "gres_order=gpu1:3-1-0-2/gpu2:0-1-3-2"]
    assert Variant.parse(words) == Variant(
        private_data=True,
        shards=4,
        node_prefix="x",
        prolog=("/a", "/b"),
        gres_order={"gpu1": (3, 1, 0, 2), "gpu2": (0, 1, 3, 2)},
    )


@pytest.mark.parametrize("word", ["nonsense", "shards=many", "gres_order=gpu1", "private_data=no", "seed"])
def test_a_wrong_word_is_named(word: str) -> None:
    """An unknown or malformed variant is refused with its own text."""
    with pytest.raises(ClusterError, match=word):
        Variant.parse([word])


def test_a_seed_draws_the_same_device_order_again() -> None:
    """Two layouts of one seed agree, each node has all its devices, and some seed changes the order."""
    orders = [[node.minors for node in _layout(Path("/d"), Variant(seed=seed)).nodes.values()] for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len({str(order) for order in orders}) > 1
    assert all(sorted(minors) == [0, 1, 2, 3] for order in orders for minors in order[:2])


def test_nodes_have_addresses_of_their_own() -> None:
    """Each node's loopback address differs, also from those of a cluster with other ports."""
    one = _layout(Path("/d"), Variant())
    other = Layout(Path("/e"), "id", Variant(), (20007, *one.ports[1:]))
    addresses = [node.address for layout in (one, other) for node in layout.nodes.values()]
    assert len(set(addresses)) == 6
    assert all(address.startswith("127.") for address in addresses)


def test_a_backup_controller_has_an_address_of_its_own() -> None:
    """It is neither the first controller's nor a node's, so that both may use one port."""
    layout = _layout(Path("/d"), Variant.parse(["backup"]))
    assert layout.variant.backup
    assert layout.backup_address not in {"127.0.0.1", *(node.address for node in layout.nodes.values())}


def test_the_state_file_gives_the_layout_back(tmp_path: Path) -> None:
    """What was saved is loaded unchanged, with each daemon's pid and start time."""
    layout = _layout(tmp_path, Variant(prolog=("/p",), gres_order={"gpu1": (3, 2, 1, 0)}, seed=4))
    layout.save({"munged-hub": (12, 345)})
    assert Layout.load(tmp_path) == (layout, {"munged-hub": (12, 345)})


def test_a_directory_without_a_cluster_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Down and status on an empty or damaged directory say so and exit with 1."""
    assert main(["status", "--dir", str(tmp_path)]) == 1
    assert "no cluster in" in capsys.readouterr().err
    (tmp_path / "cluster.json").write_text("{")
    assert main(["down", "--dir", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert "damaged" in message
    assert message.count("\n") == 1


def test_stopping_a_cluster_that_never_started_does_nothing(tmp_path: Path) -> None:
    """A stop before any start, as a finalizer may do it, is no error."""
    LoopbackCluster(tmp_path).stop()
