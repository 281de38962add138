"""Bundles of step times: the same after writing and reading, refused after any change, promoted and rolled back."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.estimate.planted_times import planted, program
from tests.unit.jobs.history.test_array_file import IMPOSSIBLE

from gpuwaste.core.errors import ModelError
from gpuwaste.estimate.step_time import step_time
from gpuwaste.estimate.time_bundle import TimesRegistry, load_times, pack, times_in_use, unpack, write_times
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_fit import fit_model
from gpuwaste.models.time_transfer import transfer
from gpuwaste.slurm.gpu_types import device


@cache
def model() -> TimeModel:
    return fit_model("rtx3090", planted(60))


def written(folder: Path, name: str = "one") -> Path:
    write_times(folder / name, name, 1_800_000_000, {"rtx3090": model()}, {"card.json": b"{}"})
    return folder / name


def test_a_model_is_the_same_after_writing_and_reading() -> None:
    """Equal models give equal bytes, and a read one gives the same answer; a correction is kept too."""
    data = pack(model())
    again = unpack(data, model().grounds, "x")
    assert pack(again) == data
    sums = program(np.random.default_rng(5), "cnn")
    assert step_time({"rtx3090": again}, sums, "rtx3090") == step_time({"rtx3090": model()}, sums, "rtx3090")
    moved = transfer(model(), device("rtx3090"), device("rtx4090"), planted(20, seed=2))
    kept = unpack(pack(moved), moved.grounds, "x")
    assert kept.correction is not None
    assert step_time({"rtx4090": kept}, sums, "rtx4090") == step_time({"rtx4090": moved}, sums, "rtx4090")


def test_a_bundle_is_promoted_and_rolled_back(tmp_path: Path) -> None:
    """The models in use are those of the champion, and of the one before after a rollback."""
    registry = TimesRegistry(tmp_path / "models")
    assert times_in_use(tmp_path / "models") == {}
    for name in ("one", "two"):
        registry.add(written(tmp_path, name))
        registry.promote(name)
    assert list(times_in_use(tmp_path / "models")) == ["rtx3090"]
    assert [entry.name for entry in registry.list() if entry.champion] == ["two"]
    assert registry.rollback().manifest.name == "one"


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """One byte of the arrays, and the bundle is not loaded."""
    folder = written(tmp_path)
    data = bytearray((folder / "rtx3090.npz").read_bytes())
    data[100] ^= 1
    (folder / "rtx3090.npz").write_bytes(bytes(data))
    with pytest.raises(ModelError, match=r"rtx3090\.npz: its checksum is not the one in manifest\.json"):
        load_times(folder)


def archive(**arrays: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as found:
        for name, data in arrays.items():
            found.writestr(f"{name}.npy", data)
    return stream.getvalue()


def as_npy(array: NDArray[Any], *, pickled: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=pickled)
    return stream.getvalue()


class Trap:
    """What must never be run by reading a model."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('ran')",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 nothing",
        pickle.dumps(Trap()),
        archive(),
        archive(keys=b"no array"),
        archive(keys=as_npy(np.array([Trap()], dtype=object), pickled=True)),
        archive(keys=as_npy(np.array(["mm/f32"])), coefficients=as_npy(np.ones((2, 3)))),
        archive(keys=as_npy(np.array(["mm/f32"])), coefficients=as_npy(np.full((1, 3), np.nan))),
        archive(keys=as_npy(np.array(["mm/f32"])), coefficients=as_npy(np.full((1, 3), -1.0))),
        archive(keys=as_npy(np.arange(3))),
        archive(keys=IMPOSSIBLE["10^13 numbers"]),
        archive(keys=IMPOSSIBLE["9000 brackets"]),
    ],
    ids=[
        "empty",
        "cut",
        "pickle",
        "nothing inside",
        "no array",
        "objects",
        "shapes",
        "nan",
        "negative",
        "types",
        "size",
        "brackets",
    ],
)
def test_what_is_no_model_is_refused_in_one_line(data: bytes) -> None:
    """Whatever the file holds, nothing of it runs, and the error names the file."""
    with pytest.raises(ModelError, match=r"^x\.npz: not the arrays of a time model: [^\n]+$"):
        unpack(data, model().grounds, "x.npz")


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    """A gigabyte of zeros in a small file is not unpacked."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as found, found.open("keys.npy", "w") as member:
        for _ in range(160):
            member.write(bytes(1 << 20))
    with pytest.raises(ModelError, match="bytes unpacked"):
        unpack(stream.getvalue(), model().grounds, "x.npz")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(schema=2),
        lambda data: data.update(features=["other:3"]),
        lambda data: data.update(types={}),
        lambda data: data.update(types={"../h100": data["types"]["rtx3090"]}),
        lambda data: data.update(files={}),
        lambda data: data.update(more=1),
        lambda data: data["types"]["rtx3090"].update(gpu="h100"),
    ],
    ids=["schema", "features", "no types", "path", "files", "unknown key", "other type"],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A bundle of another version, without its files, or with a path for a type is not loaded."""
    folder = written(tmp_path)
    data = json.loads((folder / "manifest.json").read_text())
    change(data)
    (folder / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(ModelError):
        load_times(folder)
