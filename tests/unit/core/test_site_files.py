"""Files that a site writes are read again when they change, and what cannot be used leaves what was in use."""

from itertools import count
from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import MAX_FILES, WatchedFiles, folder_files, read_each


class Folder:
    """A folder of TOML, watched: `content` has each file's text by its name; the text "bad" cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path, self.reads, self.said = path, 0, list[str]()
        self.watched = WatchedFiles(path, self._read, {"built": "in"}, self.said.append)

    def _read(self) -> dict[str, str]:
        self.reads += 1
        found = {path.stem: path.read_text() for path in folder_files(self.path, "rules", "[hub] rules_dir")}
        if bad := [name for name, text in found.items() if text == "bad"]:
            raise ConfigError(f"{bad[0]}: bad")
        return found

    def content(self) -> dict[str, str]:
        """Return what is in use after a refresh."""
        self.watched.refresh()
        return self.watched.content


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder that does not exist yet."""
    return Folder(tmp_path / "rules.d")


def test_a_change_is_read_and_nothing_else_is(folder: Folder) -> None:
    """A file that comes, changes or goes is read at the next refresh; without a change nothing is read."""
    assert folder.watched.content == {"built": "in"}
    assert folder.content() == {}
    folder.path.mkdir()
    for changed in ({"a": "1"}, {"a": "22"}, {"a": "22", "b": "1"}, {"b": "1"}):
        for name in ("a", "b"):
            file = folder.path / f"{name}.toml"
            file.write_text(changed[name]) if name in changed else file.unlink(missing_ok=True)
        (folder.path / ".hidden.toml").write_text("bad")
        assert folder.content() == changed
        before = folder.reads
        assert (folder.content(), folder.reads) == (changed, before)


def test_what_cannot_be_used_leaves_the_last_good_content_and_is_said_once(folder: Folder) -> None:
    """It is tried again at each refresh, since its cause may leave the file as it was; another error is said."""
    folder.path.mkdir()
    (folder.path / "a.toml").write_text("good")
    assert folder.content() == {"a": "good"}
    (folder.path / "b.toml").write_text("bad")
    for reads in (2, 3, 4):
        assert (folder.content(), folder.reads) == ({"a": "good"}, reads)
    assert (folder.said, folder.watched.error) == (["b: bad"], "b: bad")
    (folder.path / "a.toml").write_text("bad")
    folder.content()
    assert folder.said == ["b: bad", "a: bad"]
    (folder.path / "a.toml").write_text("good")
    (folder.path / "b.toml").unlink()
    assert (folder.content(), folder.watched.error) == ({"a": "good"}, "")


def test_a_file_is_known_to_be_gone_only_where_the_folder_can_be_listed(folder: Folder) -> None:
    """A folder that is not there, or has too many files, says of no file that it is gone."""
    assert folder.watched.has("a.toml")
    folder.content()
    assert folder.watched.has("a.toml")
    folder.path.mkdir()
    folder.content()
    assert not folder.watched.has("a.toml")
    (folder.path / "a.toml").write_text("1")
    assert not folder.watched.has("a.toml")
    folder.content()
    assert (folder.watched.has("a.toml"), folder.watched.has("b.toml")) == (True, False)
    for number in range(MAX_FILES):
        (folder.path / f"{number}.toml").touch()
    assert folder.content() == {"a": "1"}
    assert folder.said == [f"{folder.path}: {MAX_FILES + 1} rules, {MAX_FILES} at most: remove some"]
    assert folder.watched.has("b.toml")


def test_one_file_is_watched_as_a_folder_is_and_none_is_read_once(tmp_path: Path) -> None:
    """A file that is replaced by one of its size is read; without a path what is read first stays."""
    path, numbers = tmp_path / "prices.csv", count()
    path.write_text("1")
    file, none = WatchedFiles(path, path.read_text, ""), WatchedFiles(None, lambda: next(numbers), -1)
    file.refresh()
    other = tmp_path / "other"
    other.write_text("2")
    other.replace(path)
    for _ in range(2):
        file.refresh()
        none.refresh()
        assert (file.content, none.content) == ("2", 0)


def test_a_folder_that_cannot_be_listed_names_its_key(tmp_path: Path) -> None:
    """What should be a folder and is a file is an error that says where it is set."""
    path = tmp_path / "rules.d"
    path.touch()
    with pytest.raises(ConfigError, match=r"rules\.d: rules cannot be read: Not a directory: see \[hub\] rules_dir$"):
        folder_files(path, "rules", "[hub] rules_dir")


def test_an_error_in_one_file_leaves_the_others() -> None:
    """Files are read in their order, each by itself."""

    def read(path: Path) -> str:
        if path.name == "b":
            raise ConfigError("b: bad")
        return path.name

    found, errors = read_each(map(Path, "abc"), read)
    assert (found, list(map(str, errors))) == (["a", "c"], ["b: bad"])
