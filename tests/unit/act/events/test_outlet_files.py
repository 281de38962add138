"""Outlets from files: what is wrong is one line that names file, table and key."""

from pathlib import Path

import pytest

from gpuwaste.act.events.outlet import WAYS, load_outlet, load_outlets
from gpuwaste.core.errors import ConfigError

GOOD = '[webhook]\nurl = "https://hooks.example.org/gpu"\n'


def written(folder: Path, text: str | bytes, name: str = "hook.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_an_outlet(tmp_path: Path) -> None:
    """Its name is the file's; without [outlet] it takes all kinds from now on; a bad file costs no other."""
    written(tmp_path, GOOD, "b.toml")
    written(tmp_path, '[outlet]\nevents = ["job.*"]\nbegin = "oldest"\n[journal]\n', "a.toml")
    written(tmp_path, "nonsense", "c.toml.rpmsave")
    written(tmp_path, "nonsense", "d.toml")
    found, errors = load_outlets(tmp_path)
    assert [str(error).partition(": ")[0] for error in errors] == [str(tmp_path / "d.toml")]
    assert [(one.name, one.way, one.begin) for one in found] == [("a", "journal", "oldest"), ("b", "webhook", "now")]
    assert "job.ended" in found[0].kinds
    assert "node.silent" not in found[0].kinds
    assert load_outlets(tmp_path / "none") == ([], [])


def test_each_way_has_settings_with_texts() -> None:
    """The reference is made of them."""
    assert set(WAYS) == {"journal", "kafka", "webhook"}
    for module in WAYS.values():
        for field in module.SETTINGS.__dataclass_fields__.values():
            assert field.metadata["text"].endswith(".")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", r"expected one of \[journal\], \[kafka\], \[webhook\]"),
        ("[webhook]\n[journal]\n", "expected one of"),
        ("[webhok]\n", r"unknown table \[webhok\]: did you mean 'webhook'"),
        ('[outlet]\nevent = ["*"]\n[journal]\n', "unknown key 'event': did you mean 'events'"),
        ('[outlet]\nevents = ["job.begun"]\n[journal]\n', r"\[outlet\] events: no kind of event is called 'job.begun'"),
        ('[outlet]\nbegin = "then"\n[journal]\n', "begin 'then': expected now or oldest"),
        ('[journal]\npriority = "loud"\n', r"\[journal\] priority 'loud': expected debug, info, notice"),
        ("[webhook]\n", r"\[webhook\] url '': expected https://"),
        ('[webhook]\nurl = "file:///etc/passwd"\n', "expected https://"),
        ('[webhook]\nurl = "https://u:p@h/x"\n', "expected https://"),
        ('[webhook]\nurl = "https://h/a b"\n', "expected printable ASCII"),
        ('[webhook]\nurl = "https://h/\\u00e9"\n', "expected printable ASCII"),
        ('[webhook]\nurl = "https://h/x"\nbatch = 0\n', "batch 0: expected 1 to 1000"),
        ('[webhook]\nurl = "https://h/x"\ntimeout_s = 0\n', "timeout_s 0: expected more than 0"),
        ('[webhook]\nurl = "https://h/x"\nnetworks = ["10.1.2.3/8"]\n', "networks '10.1.2.3/8': expected a network"),
        ('[webhook]\nurl = "https://h/x"\nsecret_file = "/nonexistent"\n', "/nonexistent"),
        ("[kafka]\n", r"\[kafka\] brokers is empty"),
        ('[kafka]\nbrokers = ["h:9092"]\nsecurity = "TLS"\n', "security 'TLS': expected PLAINTEXT"),
        (b"\xff\xfe\x00", "invalid TOML"),
        ("[" * 70_000, "over 65536 bytes"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str | bytes, error: str) -> None:
    """The file, the table and the key, and what to write; nothing of it is opened before."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=error) as raised:
        load_outlet(path).make()
    assert "\n" not in str(raised.value)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """So is one that is no base64, or too short to be one."""
    secret = tmp_path / "secret"
    path = written(tmp_path, f'{GOOD}secret_file = "{secret}"\n')
    for content, mode, error in (
        ("whsec_" + "A" * 44, 0o644, "everybody can read"),
        ("whsec_!!", 0o600, "expected whsec_ and base64"),
        ("whsec_QUJD", 0o600, "3 bytes: expected 16 at least"),
    ):
        secret.write_text(content)
        secret.chmod(mode)
        with pytest.raises(ConfigError, match=error):
            load_outlet(path).make()


@pytest.mark.parametrize("name", ["a b.toml", ".toml", "x" * 65 + ".toml", "é.toml"])
def test_the_name_of_a_file_names_metrics_and_marks(tmp_path: Path, name: str) -> None:
    """So it is made of few characters."""
    with pytest.raises(ConfigError, match="the file's name is the outlet's"):
        load_outlet(written(tmp_path, GOOD, name))
