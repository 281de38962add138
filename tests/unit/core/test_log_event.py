"""Events of the log: a line begins with the id, hostile fields stay harmless, only declared events are logged."""

import ast
import io
import logging
import string
from collections.abc import Iterator

import pytest
from tools.reference import source

from gpuwaste.core import log_event
from gpuwaste.core.logs import LONGEST, LineHandler

_LEVELS = {"info", "warning", "error", "exception", "critical", "log"}
_DECLARE = {f"log_event.{level}" for level in ("info", "warning", "error", "critical")}
_FULL = log_event.error("disk-full: {path}: cannot write: {error}", "Free space.")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Return what a daemon's handler writes."""
    text, logger = io.StringIO(), logging.getLogger(__name__)
    handler = LineHandler(text)
    logger.addHandler(handler)
    yield text
    logger.removeHandler(handler)


def test_a_line_begins_with_the_id_and_ends_with_the_repeats(
    stream: io.StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    """The record has the id as a field, and the declaring module as its logger."""
    _FULL.log(path="/var", error=OSError("no space"), repeats=3)
    assert stream.getvalue() == "ERROR disk-full: /var: cannot write: no space (3 repeats suppressed)\n"
    (record,) = caplog.records
    assert (vars(record)["event"], record.name, record.funcName) == ("disk-full", __name__, _own_name())


def _own_name() -> str:
    return test_a_line_begins_with_the_id_and_ends_with_the_repeats.__name__


def test_hostile_fields_are_values_and_no_formats(stream: io.StringIO) -> None:
    """Braces, percent signs, line breaks and controls of a field are text; an endless one is cut."""
    _FULL.log(path="{error.__class__} %s", error="a\nERROR forged\x1b[2J")
    assert stream.getvalue() == "ERROR disk-full: {error.__class__} %s: cannot write: a\\nERROR forged\\x1b[2J\n"
    _FULL.log(path="/", error="x" * 100_000)
    assert len(stream.getvalue().splitlines()[1]) <= LONGEST + len("ERROR ")


def test_a_field_that_fails_raises_nothing(stream: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    """An event that is logged without a field, or with one that cannot be text, costs that line alone."""
    logging.getLogger(__name__).propagate = False  # pytest's own handler raises
    try:
        _FULL.log(path="/var")
        _FULL.log(path="/var", error="full")
    finally:
        logging.getLogger(__name__).propagate = True
    assert stream.getvalue() == "ERROR disk-full: /var: cannot write: full\n"
    assert "KeyError" in capsys.readouterr().err


def test_a_trace_ends_the_line(stream: io.StringIO) -> None:
    """A bug is one line: what was skipped, the error, and where it came from."""
    try:
        int("wrong")
    except ValueError as error:
        _FULL.log(error, path="/var", error="bug")
    assert "'wrong' (at test_log_event.py:" in stream.getvalue()


@pytest.mark.long
def test_only_declared_events_are_logged_with_the_fields_of_their_texts() -> None:
    """No module calls the log with words of its own, debugging apart, and each call names the fields of its event."""
    texts = {"BUG": log_event.BUG.text}
    trees = list(source.modules())
    for _, tree in trees:
        texts |= {name: text for name, text in _declared(tree).items() if not name.startswith("_")}
    assert len(texts) > 2
    calls = 0
    for module, tree in trees:
        known = texts | _declared(tree)
        for call in source.calls(tree):
            owner, _, method = source.called(call).rpartition(".")
            place = f"{module}:{call.lineno}"
            if method == "log" and owner in known:
                calls += 1
                fields = {keyword.arg for keyword in call.keywords}
                assert fields == _fields(known[owner]), place
            elif method == "trouble":
                calls += 1
                fields = {keyword.arg for keyword in call.keywords} | {"about"}
                assert fields >= _fields(known[ast.unparse(call.args[0])]), place
            elif module not in {"core.log_event", "agent.events"}:
                assert method not in _LEVELS or not _is_log(owner), f"{place}: declare an event: core/log_event.py"
    assert calls > 80


def _is_log(owner: str) -> bool:
    return owner in {"log", "_log", "_LOG", "logger", "logging", "LOG"} or owner.startswith("logging.getLogger")


def _declared(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        value = node.value if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.AnnAssign) and isinstance(value, ast.Call) and source.called(value) in _DECLARE:
            found[ast.unparse(node.target)] = source.words(value.args[0]).partition(": ")[2]
    return found


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
