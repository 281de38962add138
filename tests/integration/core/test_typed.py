"""Types that several threads read for the first time at the same moment."""

import subprocess
import sys

import pytest

_RACE = """
import faulthandler, sys, threading
from typing import Annotated
import msgspec
from msgspec import Meta, defstruct
from gpuwaste.core import typed

faulthandler.enable()
sys.setswitchinterval(1e-6)
read = {"convert": typed.convert, "decode": lambda data, kind: typed.decode(TEXT, kind),
        "decoder": lambda data, kind: typed.decoder(kind).decode(TEXT)}[sys.argv[1]]

def kind():
    inner = defstruct("Inner", [(f"a{n}", Annotated[int, Meta(ge=n)] | None, None) for n in range(9)])
    middle = defstruct("Middle", [(f"b{n}", list[Annotated[inner, Meta(description=str(n))]], []) for n in range(9)])
    return defstruct("Outer", [(f"c{n}", dict[Annotated[str, Meta(max_length=n + 5)], middle], {}) for n in range(9)])

DATA = {f"c{n}": {"x": {f"b{m}": [{"a8": 30}] for m in range(9)}} for n in range(9)}
TEXT = msgspec.json.encode(DATA)
failed = []

def first(made, barrier):
    barrier.wait()
    try:
        read(DATA, made)
    except Exception as error:
        failed.append(error)

for _ in range(30):
    made, barrier = kind(), threading.Barrier(6)
    threads = [threading.Thread(target=first, args=(made, barrier)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
sys.exit(str(failed[0]) if failed else 0)
"""


@pytest.mark.parametrize("reader", ["convert", "decode", "decoder"])
def test_six_threads_read_a_type_for_the_first_time(reader: str) -> None:
    """None crashes the process, and none refuses what fits the type: msgspec alone does both."""
    done = subprocess.run([sys.executable, "-c", _RACE, reader], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
