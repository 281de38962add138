"""The few keys that the submit plugins read of gpuwaste.toml."""

import dataclasses
import os
import random
from pathlib import Path

import pytest
from tests.plugins.client_driver import Client

from gpuwaste.advice.plugin_reader import read_as_plugin
from gpuwaste.core.advice_config import AdvisorConfig, PluginConfig

pytestmark = pytest.mark.core

DEFAULTS = {
    **{key: str(value) for key, value in dataclasses.asdict(PluginConfig()).items()},
    "socket": AdvisorConfig().socket,
}

ODD_LINES = [
    b"deadline_us = -1",
    b"deadline_us = 1.5",
    b'deadline_us = "5000"',
    b"deadline_us = 0",
    b"deadline_us = 99999999999999999999",
    b"deadline_us = 5__0",
    b"deadline_us = 5000 5",
    b"deadline_us =",
    b"deadline_us",
    b"= 5",
    b"kill_switch = /tmp/x",
    b'kill_switch = "/tmp/x',
    b'kill_switch = ""',
    b'kill_switch = "/tmp/\\u0041"',
    b'kill_switch = "' + b"x" * 1500 + b'"',
    b'kill_switch = "' + b"x" * 5000 + b'"',
    b'advisor_user = "' + b"u" * 64 + b'"',
    b"dedline_us = 5000",
    b"\xff\xfe\x01\x02",
    b"\x00binary",
    b"[plugin",
]


def read(harness: Path, path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the settings of a file and what the log says of it, the unknown advisor_user apart."""
    with Client(harness) as client:
        settings = client.settings(path)
    return settings, [line for line in client.log if "no user" not in line]


def test_defaults_are_those_of_the_programs(harness: Path, tmp_path: Path) -> None:
    """Without a file the plugins take what core/advice_config.py says, and say so in one line."""
    settings, log = read(harness, tmp_path / "none.toml")
    assert settings == DEFAULTS
    assert log == [f"gpuwaste: {tmp_path}/none.toml: No such file or directory; using the defaults"]


def test_generated_file_is_understood(harness: Path) -> None:
    """etc/gpuwaste.toml, which the documentation hands out, gives the defaults without a word."""
    settings, log = read(harness, Path(__file__).parents[2] / "etc" / "gpuwaste.toml")
    assert (settings, log) == (DEFAULTS, [])


def test_every_key(harness: Path, tmp_path: Path) -> None:
    """Each key is read, in TOML's forms, whatever the sections around it hold."""
    path = tmp_path / "gpuwaste.toml"
    path.write_bytes(
        b"""
[hub]
node_tokens = [
  ["a", "b"],
]
deadline_us = 1
socket = "/elsewhere"
[ "odd" ]
[plugin]   # ours\r
deadline_us = 12_000 # microseconds\r
kill_switch='/srv/#no'
breaker_misses=5
\tbreaker_first_ms = 7
breaker_max_ms = 900
stale_s = 60
script_bytes = 0
advisor_user = "root"
[advisor]
max_queue = 3
socket = "/srv/a-b.sock"
[agent]
stale_s = 1"""
    )
    settings, log = read(harness, path)
    assert log == []
    assert settings == {
        "deadline_us": "12000",
        "kill_switch": "/srv/#no",
        "breaker_misses": "5",
        "breaker_first_ms": "7",
        "breaker_max_ms": "900",
        "stale_s": "60",
        "script_bytes": "0",
        "advisor_user": "root",
        "socket": "/srv/a-b.sock",
    }


@pytest.mark.parametrize("line", ODD_LINES)
def test_odd_line_leaves_the_default(harness: Path, tmp_path: Path, line: bytes) -> None:
    """A line that is not understood leaves the default, is named once with its number, and the others are read."""
    path = tmp_path / "gpuwaste.toml"
    path.write_bytes(b"[plugin]\nstale_s = 11\n" + line + b"\n[plugin]\nbreaker_misses = 12\n")
    settings, log = read(harness, path)
    assert settings == {**DEFAULTS, "stale_s": "11", "breaker_misses": "12"}
    if line not in (b"[plugin", b"\x00binary"):
        assert [entry.startswith(f"gpuwaste: {path}:3: ") for entry in log] == [True], log


def test_many_odd_lines_make_two_log_lines(harness: Path, tmp_path: Path) -> None:
    """A file full of rubbish does not fill slurmctld's log."""
    path = tmp_path / "gpuwaste.toml"
    path.write_bytes(b"[plugin]\n" + b"rubbish\n" * 1000)
    settings, log = read(harness, path)
    assert settings == DEFAULTS
    assert log[0].startswith(f"gpuwaste: {path}:2: expected KEY = VALUE")
    assert log[1:] == [f"gpuwaste: {path}: 999 more lines cannot be parsed"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge", "socket path"])
def test_file_that_is_none(harness: Path, tmp_path: Path, kind: str) -> None:
    """A folder, a pipe that nobody writes to, or a file beyond all reason is not waited for: the defaults hold."""
    path = tmp_path / "gpuwaste.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.write_text(f'[advisor]\nsocket = "/{"s" * 108}"\n')
    settings, log = read(harness, path)
    assert settings == DEFAULTS
    assert len(log) == 1


def test_random_bytes_are_survived(harness: Path, tmp_path: Path) -> None:
    """Files of broken TOML give settings within their ranges, under the address sanitizer."""
    draw = random.Random(5)
    good = (Path(__file__).parents[2] / "etc" / "gpuwaste.toml").read_bytes()
    at = good.index(b"[plugin]")
    path = tmp_path / "gpuwaste.toml"
    with Client(harness) as client:
        for _ in range(300):
            data = bytearray(good[at : at + 1500])
            for _ in range(draw.randrange(1, 30)):
                data[draw.randrange(len(data))] = draw.choice(b'"=[]#\\\n\r\0\xff_9 a')
            path.write_bytes(data)
            settings = client.settings(path)
            assert 100 <= int(settings["deadline_us"]) <= 10_000_000
            assert 0 <= int(settings["script_bytes"]) <= 65536


def test_the_check_of_the_configuration_reads_as_the_plugins_do(harness: Path, tmp_path: Path) -> None:
    """advice/plugin_reader.py, by which `gpuwaste config check` judges, takes and refuses what the C reader does."""
    draw = random.Random(11)
    good = (Path(__file__).parents[2] / "etc" / "gpuwaste.toml").read_text(encoding="utf-8")
    start = good.index("[plugin]")
    set_all = good[start:].replace("\n#", "\n").encode()
    samples = [b"[plugin]\n" + line + b"\nstale_s = 11\n" for line in ODD_LINES if b"\0" not in line]
    samples += [b"[plugin] # x\nbreaker_max_ms = 2\n", b"[ plugin ]\nstale_s = 5\n", b"[advisor]\nsocket='/a'# b\n"]
    for _ in range(300):
        data = bytearray(set_all)
        for _ in range(draw.randrange(1, 20)):
            data[draw.randrange(len(data))] = draw.choice(b"\"=[]#\\\n\r_9a'")
        samples.append(bytes(data))
    files = [tmp_path / f"{number}.toml" for number in range(len(samples))]
    with Client(harness) as client:
        for path, sample in zip(files, samples, strict=True):
            path.write_bytes(sample)
            taken = client.settings(path)
            assert {key: str(value) for key, value in read_as_plugin(path).values.items()} == taken, sample
    for path, sample in zip(files, samples, strict=True):
        told = [line for line in client.log if line.startswith(f"gpuwaste: {path}:") and "more lines" not in line]
        odd = read_as_plugin(path).odd
        assert [line.split(":")[2] for line in told] == [str(number) for _, number, *_ in odd[:1]], sample


def drop_in(path: Path, name: str, data: bytes) -> Path:
    """Write a drop-in of a configuration file and return its path."""
    file = path.with_name(f"{path.name}.d") / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def test_drop_ins_are_read_over_the_file_by_name(harness: Path, tmp_path: Path) -> None:
    """Of a key in several files the last by name counts, hidden files and other endings do not; the check agrees."""
    path = tmp_path / "gpuwaste.toml"
    path.write_bytes(b'[plugin]\nstale_s = 1\nbreaker_misses = 1\ndeadline_us = 1000\n[advisor]\nsocket = "/a"\n')
    drop_in(path, "b.toml", b"[plugin]\nstale_s = 3\nrubbish\n")
    drop_in(path, "a.toml", b'[plugin]\nstale_s = 2\nbreaker_misses = 2\n[advisor]\nsocket = "/b"\n')
    for name in (".hidden.toml", "c.toml.dpkg-new", "c.toml~", "toml"):
        drop_in(path, name, b"[plugin]\nstale_s = 9\n")
    settings, log = read(harness, path)
    wanted = {"stale_s": "3", "breaker_misses": "2", "deadline_us": "1000", "socket": "/b"}
    assert {key: settings[key] for key in wanted} == wanted
    assert log == [f"gpuwaste: {path}.d/b.toml:3: expected KEY = VALUE; using the default"]
    reading = read_as_plugin(path)
    assert {key: str(value) for key, value in reading.values.items()} == settings
    assert [(file.name, number) for file, number, *_ in reading.odd] == [("b.toml", 3)]


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge", "dangling", "too many"])
def test_drop_ins_that_are_none_leave_the_file(harness: Path, tmp_path: Path, kind: str) -> None:
    """Nothing in the folder is waited for, and what cannot be read is one log line."""
    path = tmp_path / "gpuwaste.toml"
    path.write_bytes(b"[plugin]\nstale_s = 11\n")
    bad = drop_in(path, "bad.toml", b"")
    bad.unlink()
    if kind == "folder":
        bad.mkdir()
    elif kind == "pipe":
        os.mkfifo(bad)
    elif kind == "huge":
        with bad.open("wb") as file:
            file.truncate(1 << 30)
    elif kind == "dangling":
        bad.symlink_to("none")
    else:
        for number in range(200):
            drop_in(path, f"{number}.toml", b"[plugin]\nstale_s = 11\n")
    settings, log = read(harness, path)
    assert settings == {**DEFAULTS, "stale_s": "11"}
    assert len(log) == 1, log
