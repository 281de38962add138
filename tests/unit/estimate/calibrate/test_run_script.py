"""The script that measures on the site: what it does next after any end, and that one bad program ends nothing."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpuwaste.estimate.calibrate import site

PLAN = [{"id": name, "family": "mlp", "about_b": 10} for name in "abc"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(site.__file__).with_name("run.py")
    spec = importlib.util.spec_from_file_location("calibration_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Backend:
    """Counts steps; program b does not fit, program c fails."""

    SUFFIX = ".hlo"

    def __init__(self) -> None:
        self.steps = 0

    def prepare(self, program: dict[str, Any]) -> tuple[Any, bytes]:
        if program["id"] == "b":
            raise MemoryError("out of memory")
        if program["id"] == "c":
            raise ValueError("two\nlines")
        return self.run, b"HloModule a"

    def run(self, count: int) -> None:
        self.steps += count

    def is_out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, MemoryError)


def test_what_has_a_result_is_not_done_again(script: ModuleType) -> None:
    """Done is done, whatever came of it; what was only started is tried once more, not twice."""
    records = [
        {"id": "a", "status": "started"},
        {"id": "a", "status": "failed"},
        {"id": "b", "status": "started"},
        {"id": "c", "status": "started"},
        {"id": "c", "status": "started"},
    ]
    assert [each["id"] for each in script.to_do(PLAN, records)] == ["b"]


def test_a_cut_line_is_ended_before_the_next(script: ModuleType, tmp_path: Path) -> None:
    """A record after a kill in the middle of a line is a line of its own."""
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": "a", "st')
    script.append(path, {"id": "b", "status": "ok"})
    assert script.read_lines(path) == [{"id": "b", "status": "ok"}]


def test_a_program_is_measured_in_parts(script: ModuleType, tmp_path: Path) -> None:
    """Its text is kept, its time is the median of five parts, at most some thousand steps are run."""
    backend = Backend()
    found = script.measured(backend, PLAN[0], tmp_path)
    assert found["status"] == "ok"
    assert found["steps"] == 2000
    assert (tmp_path / found["program"]).read_text() == "HloModule a"
    assert backend.steps == 2 + 1 + 2000


@pytest.mark.parametrize(("number", "status"), [(1, "memory"), (2, "failed")])
def test_a_program_that_fails_is_a_record(script: ModuleType, tmp_path: Path, number: int, status: str) -> None:
    """Out of memory and any other failure are results in one line."""
    found = script.measured(Backend(), PLAN[number], tmp_path)
    assert found["status"] == status
    assert "\n" not in json.dumps(found)


def test_without_a_framework_the_script_says_what_to_do(script: ModuleType) -> None:
    """A Python without jax and torch ends with one line that names the option."""
    with pytest.raises(SystemExit, match=r"no framework to measure with: .*--python"):
        script.load_backend("auto")


class Pool:
    """A framework that has taken so many bytes of the GPU."""

    def __init__(self, size_b: int | None) -> None:
        self.size_b = size_b

    def pool_b(self) -> int | None:
        return self.size_b


@pytest.mark.parametrize(
    ("pool_b", "state", "context"),
    [
        (3 << 30, {"used_mib": "3500"}, {"context_b": (3500 - 3072) << 20}),
        (4 << 30, {"used_mib": "3500"}, {"context_b": 0}),
        (None, {"used_mib": "3500"}, {}),
        (3 << 30, {"used_mib": "[N/A]"}, {}),
        (3 << 30, {}, {}),
    ],
)
def test_what_a_process_needs_besides_its_arrays(
    script: ModuleType, pool_b: int | None, state: dict[str, str], context: dict[str, int]
) -> None:
    """The GPU's memory in use without the framework's pool; nothing where one of the two is unknown."""
    assert script.context(Pool(pool_b), state) == context
    assert script.context(object(), {"used_mib": "1"}) == {}
