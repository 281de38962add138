"""The machine's TOML: ten lines are enough, what is written is read back equal, an error names its line."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.slurm.site import printed_site

from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.slurm.site import machine_tables as tables
from gpuwaste.slurm.site.cluster_model import (
    Association,
    ClusterModel,
    Failures,
    LimitSet,
    Node,
    Outage,
    Partition,
    PreemptMode,
    Qos,
    Reservation,
)
from gpuwaste.slurm.site.machine_file import read_machine
from gpuwaste.slurm.site.machine_toml import to_toml

TEN_LINES = """[[nodes]]
names = "gpu[01-16]"
cpus = 64
memory = "512G"
gpus = "a100:4"

[[nodes]]
names = "cpu[1-4]"
cpus = 128
"""
HEAD = '[[nodes]]\nnames = "n[1-4]"\ncpus = 4\n'


def read(path: Path, text: str | bytes) -> ClusterModel:
    """Write the file and read it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_machine(path)


def test_ten_lines_are_a_machine(tmp_path: Path) -> None:
    """Nodes by hostlist, one partition of all of them; the name is the file's."""
    found = read(tmp_path / "alps.toml", TEN_LINES)
    assert (found.name, len(found.nodes), found.cpus, found.gpus) == ("alps", 20, 16 * 64 + 4 * 128, 64)
    assert found.nodes[0] == Node("gpu01", 64, 512 << 30, {"a100": 4})
    assert found.partitions == (Partition("batch", tuple(node.name for node in found.nodes), default=True),)


def test_every_key_is_described() -> None:
    """No key of a table is missing in docs/how-to/simulate.md."""
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "simulate.md").read_text()
    assert [name for table in tables.TABLES for name in table.keys if f"`{name}`" not in page] == []


def test_every_key_is_read(tmp_path: Path) -> None:
    """Durations, dates and amounts as Slurm writes them; a setting by slurm.conf's spelling, as scontrol prints it."""
    found = read(
        tmp_path / "a.toml",
        HEAD + '[[partitions]]\nname = "p"\nnodes = ["n1", "n[3-4]"]\nmax_time = "1-00:00:00"\ndefault_time = 90\n'
        'whole_nodes = true\n[[qos]]\nname = "q"\ngrp_tres = "gres/gpu=0,mem=2G"\nmax_wall = "UNLIMITED"\n'
        '[[associations]]\naccount = "root"\n[[associations]]\naccount = "a"\n'
        '[[associations]]\naccount = "a"\nuser = "u"\nshares = "parent"\n'
        '[[reservations]]\nname = "r"\nstart = 2027-01-01T01:00:00+01:00\nend = 1798765200\n'
        "[failures]\nmtbf_h = 1000\n[settings]\npriorityweightage = 7\nPriorityFavorSmall = true\nbf_own = 1\n",
    )
    (partition,), (qos,), (reservation,) = found.partitions, found.qos, found.reservations
    assert partition == Partition("p", ("n1", "n3", "n4"), max_time_s=86400, default_time_s=5400, whole_nodes=True)
    assert qos.limits == LimitSet(grp_tres={"gres/gpu": 0, "mem": 2 << 30})
    assert [(each.parent, each.shares) for each in found.associations] == [("", 1), ("root", 1), ("a", None)]
    assert (reservation.start, reservation.end, len(reservation.nodes)) == (1798761600, 1798765200, 4)
    assert found.failures == Failures(1000.0, 24.0)
    assert found.settings == {"PriorityWeightAge": "7", "PriorityFavorSmall": "Yes", "bf_own": "1"}


def test_a_live_machine_is_written_and_read_back(tmp_path: Path) -> None:
    """The model of a real cluster, with the outages of its nodes."""
    model = printed_site.model(events=True)
    assert read(tmp_path / "gw.toml", to_toml(model)) == model


NAMES = st.text("ab1-._", max_size=4).map("x{}".format)
SECONDS = st.one_of(st.none(), st.integers(1, 10**9))
COUNTS = st.one_of(st.none(), st.integers(0, 10**9))
SETS = st.frozensets(NAMES, max_size=3)
DOWN_OR_NOT = st.sampled_from(("", "DOWN"))
UP_OR_NOT = st.sampled_from(("UP", "DOWN"))
MODES = st.sampled_from((None, "off", "cancel", "requeue"))
TRES = st.dictionaries(
    st.sampled_from(("cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "billing")), st.integers(0, 1 << 50), max_size=3
)


@st.composite
def limits(draw: st.DrawFn) -> LimitSet:
    """Draw limits of a QOS or an association."""
    tres = [draw(TRES) for _ in range(4)]
    jobs = [draw(COUNTS) for _ in range(4)]
    wall = draw(SECONDS), draw(SECONDS)
    return LimitSet(tres[0], jobs[0], jobs[1], wall[0], tres[1], tres[2], tres[3], jobs[2], jobs[3], wall[1])


def some(draw: st.DrawFn, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Draw some nodes' names, at least one."""
    names = [node.name for node in nodes]
    return tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True)))


@st.composite
def models(draw: st.DrawFn) -> ClusterModel:
    """Draw models of any shape that Slurm could have."""
    names = draw(
        st.lists(st.one_of(NAMES, st.integers(1, 120).map("n{:02d}".format)), min_size=1, max_size=9, unique=True)
    )
    gpus = st.dictionaries(st.one_of(st.just(""), st.just("gpu"), NAMES), st.integers(1, 16), max_size=2)
    kinds = draw(
        st.lists(
            st.tuples(
                st.integers(1, 999),
                st.integers(0, 1 << 50),
                gpus,
                SETS,
                st.integers(0, 9),
                DOWN_OR_NOT,
            ),
            min_size=1,
            max_size=3,
        )
    )
    nodes = tuple(Node(name, *draw(st.sampled_from(kinds))) for name in names)
    mode: st.SearchStrategy[PreemptMode | None] = MODES  # type: ignore[assignment] # of literals
    weights = st.dictionaries(st.sampled_from(("cpu", "mem", "gres/gpu")), st.floats(0, 1e6).map(lambda x: x / 2**30))
    least = draw(st.integers(1, 3))
    partitions = tuple(
        Partition(
            name, some(draw, nodes), index == 0, draw(UP_OR_NOT), draw(SECONDS), draw(SECONDS), least,
            draw(st.one_of(st.none(), st.integers(3, 99))), draw(st.integers(0, 99)), draw(st.integers(0, 99)),
            draw(st.booleans()), draw(mode), "", draw(SETS), draw(SETS), draw(SETS), draw(SETS), draw(weights),
        )
        for index, name in enumerate(draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)))
    )  # fmt: skip
    qos_names = draw(st.lists(NAMES, max_size=3, unique=True))
    qos = tuple(
        Qos(name, draw(st.integers(0, 9999)), draw(limits()), frozenset(qos_names[:index]), draw(mode),
            draw(st.floats(0, 1e9)), draw(SETS))
        for index, name in enumerate(qos_names)
    )  # fmt: skip
    accounts = ["root", *(name for name in draw(st.lists(NAMES, max_size=4, unique=True)) if name != "root")]
    associations = [Association("root", "", "")]
    for index, account in enumerate(accounts[1:], 1):
        above = draw(st.sampled_from(accounts[:index]))
        associations.append(Association(account, "", above, shares=draw(COUNTS), limits=draw(limits()), qos=draw(SETS)))
        usage = draw(st.floats(0, 1e15))
        associations.append(Association(account, "u", account, "p", draw(COUNTS), default_qos="d", usage=usage))
    start, length = st.integers(-(10**6), 10**12), st.integers(1, 10**9)
    intervals = [(begin := draw(start), begin + draw(length)) for _ in range(draw(st.integers(0, 2)))]
    return ClusterModel(
        draw(st.text(max_size=9)), nodes, partitions, qos, tuple(associations),
        tuple(
            Reservation(f"r{index}", some(draw, nodes), *each, draw(SETS), draw(SETS))
            for index, each in enumerate(intervals)
        ),
        tuple(Outage(nodes[0].name, *each) for each in intervals),
        draw(st.dictionaries(NAMES, st.text(st.characters(codec="utf-8"), max_size=5), max_size=2)),
        draw(st.one_of(st.none(), st.builds(Failures, st.floats(0.1, 1e9), st.floats(0.1, 1e9)))),
    )  # fmt: skip


@settings(max_examples=examples(60))
@given(models())
def test_what_is_written_is_read_back_equal(tmp_path_factory: pytest.TempPathFactory, model: ClusterModel) -> None:
    """Any model, with names, sizes and instants of every kind."""
    path = tmp_path_factory.getbasetemp() / "drawn.toml"
    assert read(path, to_toml(model)) == model


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no nodes"),
        ("[[nodes]]\ncpus = 4\n", "line 1: nodes without names"),
        ('\n[[nodes]]\nnames = "a"\n', "line 2: node a: 0 CPUs"),
        ('[[nodes]]\nnames = "a[1-"\ncpus = 4\n', "line 1: names: "),
        ('[[nodes]]\nnames = "a[1-99999]"\ncpus = 4\n', "more than 65536 names"),
        ('[[nodes]]\nnames = "a"\ncpus = 4\ngpus = "a100:-4"\n', "line 1: gpus: gpus=-4: expected a whole number"),
        ('[[nodes]]\nnames = "a"\ncpus = 4\ngpus = "a100:0"\n', "line 1: node a: 0 GPUs of type a100"),
        ('[[nodes]]\nnames = "a"\ncpus = 4\nmemory = "lots"\n', "line 1: memory: size 'lots'"),
        ('[[nodes]]\nnames = "a"\ncpus = -1\n', "line 1: cpus: -1 is negative"),
        ('[[nodes]]\nnames = "a"\ncpu = 1\n', "line 1: unknown key 'cpu': did you mean 'cpus'"),
        (HEAD + HEAD, "line 4: node n1: described twice"),
        (HEAD + '[[partitions]]\nname = "p"\nnodes = "n[1-9]"\n', "line 4: partition p: no node n5 and 4 more"),
        (HEAD + '[[partitions]]\nname = "p"\nmax_time = "0"\n', "line 4: partition p: MaxTime of 0 s"),
        (HEAD + '[[partitions]]\nname = "p"\nmax_nodes = 0\n', "line 4: partition p: MaxNodes 0"),
        (HEAD + '[[partitions]]\nname = "p q"\n', "line 4: partition 'p q': not a name"),
        (HEAD + '[[partitions]]\nname = "p"\n[[partitions]]\nname = "p"\n', "line 6: partition p: described twice"),
        (HEAD + '[[partitions]]\nname = "p"\nqos = "x"\n[[qos]]\nname = "q"\n', "line 4: partition p: no QOS x"),
        (HEAD + '[[qos]]\nname = "q"\npreempts = ["z"]\n', "line 4: QOS q: preempts z"),
        (HEAD + '[[qos]]\nname = "q"\npreempt_mode = "suspend"\n', "line 4: preempt_mode: expected off, cancel"),
        (HEAD + '[[associations]]\naccount = "a"\nparent = "b"\n', "line 4: association a: parent b is not described"),
        (
            HEAD + '[[associations]]\naccount = "a"\nparent = "b"\n[[associations]]\naccount = "b"\nparent = "a"\n',
            "line 4: account a: its parents form a cycle",
        ),
        (HEAD + '[[reservations]]\nname = "r"\nstart = 5\nend = 5\n', "line 4: reservation r: ends at 5"),
        (HEAD + '[[reservations]]\nname = "r"\nstart = 2027-01-01\nend = 5\n', "line 4: start: expected 2027-01-31"),
        (HEAD + '[[outages]]\nnode = "z"\nstart = 1\nend = 5\n', "line 4: outage of z: no node z"),
        (HEAD + "[failures]\nmtbf_h = 0\n", "line 4: mtbf_h 0.0 and repair_h 24.0: expected hours"),
        (HEAD + "[failures]\nmtbf_h = nan\n", "line 4: mtbf_h: nan is not a number in range"),
        (HEAD + '[settings]\nPriorityWeightAge = "x"\n', "line 4: PriorityWeightAge=x"),
        (HEAD + "[settings]\nPriorityWeightAge = []\n", "line 4: settings PriorityWeightAge"),
        (HEAD + "nodes = 7\n", "line 1: unknown key 'nodes': did you mean 'names'"),
        ("nodes = 7\n", "nodes: expected tables"),
        ("node = 7\n", "unknown key 'node': did you mean 'nodes'"),
        (b"\x00\xff\xfe", "invalid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str | bytes, said: str) -> None:
    """One line with the file, its line and what to change."""
    path = tmp_path / "bad.toml"
    with pytest.raises(ConfigError) as error:
        read(path, text)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300 + len(str(path))


LINES = [*HEAD.splitlines(), "[[partitions]]", 'name = "p"', "[failures]", "x = 1", "=", '"', "nodes = 3", "[nodes]"]


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_any_text_is_a_machine_or_one_error(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Whatever the lines, a model or one clear error."""
    path = tmp_path_factory.getbasetemp() / "any.toml"
    said = ""
    try:
        read(path, "\n".join(lines))
    except GpuwasteError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize("name", ["none.toml", "folder.toml/slurm.conf", "pipe"])
def test_a_file_that_is_none(tmp_path: Path, name: str) -> None:
    """A missing file, a directory without slurm.conf and a text of no format are told with their path."""
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "pipe").write_text("what is this\n")
    path = tmp_path / name
    with pytest.raises(ConfigError) as error:
        read_machine(path.parent if "/" in name else path)
    assert str(path) in str(error.value)
