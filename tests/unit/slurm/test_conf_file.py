"""The syntax of slurm.conf: pairs, quotes, comments, continued lines, Include; and files that are something else."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.formats.conf_file import MAX_FILE_B, read_conf, setting_of


def pairs(path: Path, text: str | bytes) -> list[tuple[int, tuple[tuple[str, str], ...]]]:
    """Write a file and return its lines' numbers and pairs."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(line.number, line.pairs) for line in read_conf(path)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\n\n b.C_d = 2 # said\n", [(1, (("a", "1"),)), (3, (("b.c_d", "2"),))]),
        ("NodeName=n1 CPUs=4\\\n  Gres=gpu:2 \\ \n State=UP\nX=1", [
            (1, (("nodename", "n1"), ("cpus", "4"), ("gres", "gpu:2"), ("state", "UP"))), (4, (("x", "1"),))
        ]),
        ('R="a b" S="" T="x=y"\n', [(1, (("r", "a b"), ("s", ""), ("t", "x=y")))]),
        ("A=x\\#y\n# all\n  \t\n", [(1, (("a", "x\\#y"),))]),
        ("Flags+=a Flags-=b\r\n", [(1, (("flags", "a"), ("flags", "b")))]),
        (b"A=\xe9 # \xff\n", [(1, (("a", "\\xe9"),))]),
        ("A=1 \\", [(1, (("a", "1"),))]),
        ("", []),
    ],
)  # fmt: skip
def test_lines_are_read_as_slurm_does(
    tmp_path: Path, text: str | bytes, found: list[tuple[int, tuple[tuple[str, str], ...]]]
) -> None:
    """Each line with its number."""
    assert pairs(tmp_path / "slurm.conf", text) == found


def test_other_files_are_put_in_place(tmp_path: Path) -> None:
    """Include is relative to slurm.conf, %c is the cluster; a line has the name and number of its own file."""
    (tmp_path / "nodes-gw.conf").write_text("\nNodeName=n1\n")
    path = tmp_path / "slurm.conf"
    path.write_text("ClusterName=gw\ninclude nodes-%c.conf\nX=1\n")
    lines = read_conf(path)
    assert [line.fields for line in lines] == [{"clustername": "gw"}, {"nodename": "n1"}, {"x": "1"}]
    assert lines[1].place == f"{tmp_path}/nodes-gw.conf line 2"


def test_a_setting_is_its_last_value(tmp_path: Path) -> None:
    """Names are the same in any case, an Include counts, a comment does not; a line of another kind is no matter."""
    (tmp_path / "more.conf").write_text("slurmuser=slurm\n")
    path = tmp_path / "slurm.conf"
    path.write_text("SlurmUser=root\nno pair\n#ClusterName=old\nClusterName=gw # ours\nInclude more.conf\n")
    assert [setting_of(path, name) for name in ("ClusterName", "SlurmUser", "Other")] == ["gw", "slurm", ""]
    with pytest.raises(ConfigError, match="cannot be read"):
        setting_of(tmp_path / "missing.conf", "ClusterName")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A=1\nnonsense\n", "line 2: 'nonsense': expected Key=Value"),
        ("A=1 b\n", "line 1: 'b': expected"),
        ("A=\n", "line 1: 'A=': expected"),
        ('A="x\n', "line 1: 'A=\"x': expected"),
        ('A="x # in quotes, a comment too"\n', "line 1: 'A=\"x': expected"),
        ("Include none.conf\n", "none.conf: cannot be read: No such file"),
        ("Include slurm.conf\n", "more than 8 nested Includes"),
        ("Include .\n", "cannot be read"),
        ("\x00\x01ELF\n", "line 1: 'ELF': expected"),
        ("A" * 100_000 + "\n", "line 1: 'AAAA"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    """One short line with file and line number."""
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_conf(path)
    assert said in str(error.value)
    assert len(str(error.value)) < 200 + len(str(path)) * 2
    assert str(error.value).isprintable()


def test_a_file_too_large_and_a_pipe_are_refused(tmp_path: Path) -> None:
    """Neither is read to its end, and nobody waits for a pipe's writer."""
    path = tmp_path / "slurm.conf"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_B + 1)
    with pytest.raises(ConfigError, match="larger than 16 MiB"):
        read_conf(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a plain file"):
        read_conf(tmp_path / "pipe")


PARTS = ["A=1", "NodeName", "=", '"', "\\", "\n", " ", "#", "Include ", "x", "é"]


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_any_text_is_lines_or_one_error(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    """Whatever the text, pairs with keys or one error."""
    path = tmp_path_factory.getbasetemp() / "any.conf"
    path.write_text("".join(parts))
    try:
        lines = read_conf(path)
    except ConfigError:
        lines = []
    assert all(key for line in lines for key, _ in line.pairs)
