"""Programs with random damage: each is read or refused with one line; nothing else is raised."""

import random
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.examples import examples
from tests.unit.estimate.programs import LOOP, PRODUCT

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate import reading
from gpuwaste.estimate.program_memory import estimate_memory, fits

read_program = partial(reading.read_program, native=None)  # a test here starts no process

RECORDED: Final = Path(__file__).parents[3] / "fixtures" / "estimate"
_WORDS: Final = (
    b"(", b")", b"{", b"}", b"while", b"fusion", b"call", b"9" * 18, b"-1", b"f32[]", b"(s32[], f32[2])", b"tuple(",
    b"parameter(0)", b"parameter(99)", b"get-tuple-element", b", index=7", b"ROOT ", b"to_apply=body", b"body=cond",
    b"conditional", b"sort(", b"scatter(", b"dynamic-update-slice", b"dot()", b"convolution", b"\n", b"\0", b"\xff",
    b'"', b",", b"=", b"lhs_contracting_dims={9}", b"async-start", b"copy-done", b"1e308", b"null", b"[]", b"true",
)  # fmt: skip


def _seeds() -> dict[str, bytes]:
    texts = {"product": PRODUCT.encode(), "loop": LOOP.replace("LIMIT", "5").encode()}
    return texts | {path.stem: path.read_bytes() for path in sorted(RECORDED.glob("*.json"))}


def _damaged(rng: random.Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[place:place] = rng.choice(_WORDS)
            case 1:
                del data[place : place + rng.choice((1, 2, 5, 30, 300))]
            case 2:
                start = rng.randrange(len(data) + 1)
                data[place:place] = data[start : start + rng.choice((3, 20, 100))]
            case _:
                word = rng.choice(_WORDS)
                data[place : place + len(word)] = word
    return bytes(data)


@pytest.mark.drawn
@pytest.mark.parametrize("name", _seeds())
def test_damage_is_one_line(tmp_path: Path, name: str) -> None:
    """Bytes are put in, taken out and repeated; the answer is an estimate or one line."""
    rng, whole, path = random.Random(name), _seeds()[name], tmp_path / "p"
    for _ in range(examples(300)):
        path.write_bytes(_damaged(rng, whole))
        refused = ""
        try:
            fits(estimate_memory(read_program(path)))
        except GpuwasteError as error:
            refused = str(error)
        assert "\n" not in refused
        assert len(refused) < 800
