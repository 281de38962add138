"""Files that are no programs, or hostile: one clear line each, bounded time and memory, nothing executed."""

import json
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.unit.estimate.programs import LOOP, PRODUCT, read_text

from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.estimate import reading

read_program = partial(reading.read_program, native=None)  # a test here starts no process


def _line(tmp_path: Path, data: bytes, name: str = "p.hlo") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    before = time.process_time()
    with pytest.raises(GpuwasteError) as found:
        read_program(path)
    assert time.process_time() - before < 5
    text = str(found.value)
    assert str(path) in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02" * 100, "not a program"),
        (b"\x7fELF" + b"\0" * 100, "not a program"),
        (b"hello\n", "not a program"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip: decompress it first"),
        (b"PK\x03\x04", "compressed with zip"),
        (PRODUCT[:-40].encode(), "truncated|cut|no operation|expected"),
        (PRODUCT.replace("dot(a, b)", "dot(a, z)").encode(), "operand 'z' is not defined above it"),
        (PRODUCT.replace("f32[64,128]{1,0} p", "f32[<=64,128]{1,0} p").encode(), "dynamic shape .*static shapes"),
        (PRODUCT.replace("f32[64,128]{1,0} p", "f32[?,128]{1,0} p").encode(), "dynamic shape"),
        (PRODUCT.replace("f32[64,128]{1,0} p", "f32[9999999999,9999999999]{1,0} p").encode(), "more elements"),
        (PRODUCT.replace("  ROOT c", "  \0 ROOT c").encode(), "binary data"),
        (b"HloModule x\n\nENTRY main {\n}\n", "empty"),
        (b"HloModule x\n", "truncated"),
    ],
)
def test_what_is_no_program(tmp_path: Path, data: bytes, expected: str) -> None:
    """The line says what is wrong and what to do."""
    import re  # noqa: PLC0415 - here alone

    assert re.search(expected, _line(tmp_path, data)), data[:60]


def test_onnx_on_a_host_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the RPMs there is no package onnx: the line names the file, says so, and gives two ways that work."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    said = _line(tmp_path, b"\x08\x08\x12\x04test", "m.onnx")
    assert "m.onnx: ONNX needs the Python package onnx, which this installation lacks (the RPMs never have it)" in said
    assert "gpuwaste estimate probe torch" in said
    assert "virtual environment of your own" in said


def test_no_file(tmp_path: Path) -> None:
    """A missing file, a folder and a pipe are refused at once."""
    import os  # noqa: PLC0415 - here alone

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_program(path)


def test_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    """A sparse file of 1 GB that begins as HLO: refused by its size."""
    path = tmp_path / "large.hlo"
    with path.open("wb") as file:
        file.write(b"HloModule large\n")
        file.truncate(1 << 30)
    with pytest.raises(ParseError, match=r"1024 MiB; HLO text is read up to 128 MiB"):
        read_program(path)


def test_a_recursive_call(tmp_path: Path) -> None:
    """A function that calls itself has no fixed cost."""
    text = PRODUCT.replace("HloModule product\n", "HloModule r\n\nf {\n  p = f32[2] parameter(0)\n"
                           "  ROOT q = f32[2] call(p), to_apply=f\n}\n").replace(
        "  ROOT c", "  x = f32[2] constant({1,2})\n  y = f32[2] call(x), to_apply=f\n  ROOT c")  # fmt: skip
    assert "calls itself" in _line(tmp_path, text.encode())


def test_calls_that_double_at_each_level(tmp_path: Path) -> None:
    """60 functions that each call the next one twice would be 2**60 instructions: refused within seconds."""
    levels = [
        f"f{n} {{\n  p = f32[2] parameter(0)\n  q = f32[2] call(p), to_apply=f{n + 1}\n"
        f"  ROOT r = f32[2] call(q), to_apply=f{n + 1}\n}}\n"
        for n in range(60)
    ]
    text = "HloModule d\n\n" + "\n".join(levels) + (
        "\nf60 {\n  p = f32[2] parameter(0)\n  ROOT q = f32[2] negate(p)\n}\n"
        "\nENTRY main {\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] call(a), to_apply=f0\n}\n"
    )  # fmt: skip
    assert "once its calls are expanded" in _line(tmp_path, text.encode())


def test_loops_in_loops_that_never_end(tmp_path: Path) -> None:
    """A trip count beyond any run of a program is refused."""
    text = LOOP.replace("body=body", 'body=body, backend_config={"known_trip_count":{"n":"999999999999"}}')
    text = text.replace("constant(LIMIT)", "constant(5)")
    text = text.replace(
        "  ROOT r = f32[64,64] get-tuple-element(w), index=1",
        "  v = (s32[], f32[64,64]) while(w), condition=cond, body=outer\n"
        "  ROOT r = f32[64,64] get-tuple-element(v), index=1",
    ).replace(
        "ENTRY main",
        "outer {\n  p = (s32[], f32[64,64]) parameter(0)\n"
        "  ROOT w = (s32[], f32[64,64]) while(p), condition=cond, body=body, "
        'backend_config={"known_trip_count":{"n":"999999999999"}}\n}\n\nENTRY main',
    )
    text = text.replace("body=outer", 'body=outer, backend_config={"known_trip_count":{"n":"999999999999"}}')
    assert "runs more than" in _line(tmp_path, text.encode())


def test_unknown_operations_and_types_are_counted_with_a_note(tmp_path: Path) -> None:
    """They are no error: their arrays count, their work does not."""
    text = PRODUCT.replace("  ROOT c", "  n = f7x3[64,128] frobnicate(a)\n  ROOT c")
    program = read_text(tmp_path, text)
    assert {op.kind for op in program.ops} == {"mm", "other"}
    assert any("unknown operation frobnicate" in note for note in program.notes)
    assert any("unknown element types" in note for note in program.notes)


def _probe(**changes: object) -> bytes:
    op = {"kind": "mm", "dtype": "f32", "flops": 64.0, "bytes_read": 64.0, "bytes_written": 16.0,
          "shapes": [[2, 2], [2, 8], [8, 2]]}  # fmt: skip
    document = {"gpuwaste_program": 1, "name": "p", "source": "torch", "ops": [op],
                "buffers": [{"size_b": 64, "first": 0, "last": 0, "kind": "parameter"}]}  # fmt: skip
    return json.dumps({**document, **changes}).encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gpuwaste_program": 99}, "not the json that a probe writes"),
        ({"source": "cobol"}, "source: invalid enum"),
        ({"ops": []}, "no operations"),
        ({"ops": [{"kind": "mm", "flops": -1}]}, "flops"),
        ({"ops": [{"kind": "mm", "flops": 1e30}]}, "flops"),
        ({"ops": [{"kind": "teleport"}]}, "kind"),
        ({"ops": [{"kind": "mm", "flops": 1e12, "shapes": [[2, 2], [2, 8], [8, 2]]}]}, "its shapes allow"),
        ({"ops": [{"kind": "mm", "flops": 1.0, "shapes": [[1 << 48] * 32] * 3}]}, "operation 0: shape"),
        ({"buffers": [{"size_b": 64, "first": 3, "last": 1}]}, "buffer 0: in use from operation 3 to 1"),
        ({"buffers": [{"size_b": 64, "first": 0, "last": 9}]}, "operations are 0 to 0"),
        ({"buffers": [{"size_b": -64, "first": 0, "last": 0}]}, "size_b"),
        ({"hlo": PRODUCT}, "both HLO text and operations"),
        ({"hlo": "rubbish", "ops": [], "buffers": []}, "not HLO text"),
    ],
)
def test_a_probe_that_lies(tmp_path: Path, changes: dict[str, object], expected: str) -> None:
    """Numbers that contradict one another, or that no program has, are refused."""
    assert expected.lower() in _line(tmp_path, _probe(**changes), "p.json").lower()


def test_json_that_is_cut(tmp_path: Path) -> None:
    """The end is missing: run the probe again."""
    assert "run the probe again" in _line(tmp_path, _probe()[:-9], "p.json")


def test_json_nested_without_end(tmp_path: Path) -> None:
    """A million brackets are refused, not followed."""
    assert "not" in _line(tmp_path, b'{"ops":' + b"[" * 1_000_000, "p.json")


def test_a_compilers_figure_of_another_program_is_not_used(tmp_path: Path) -> None:
    """Its arguments are not this program's: the estimate rests on liveness, and a note says so."""
    compiled = {"target": "H100", "argument_b": 10**12, "output_b": 1, "alias_b": 0, "temp_b": 1}
    path = tmp_path / "p.json"
    path.write_bytes(_probe(compiled=compiled))
    program = read_program(path)
    assert program.compiled is None
    assert any("not used" in note for note in program.notes)
