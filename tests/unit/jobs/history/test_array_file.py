"""Files of arrays: whatever a file holds, it is an error in one line, and no memory is taken on its word."""

import io
import tokenize
import zipfile

import numpy as np
import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.history.array_file import read_array, read_arrays


def npy(header: bytes, body: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """Return a npy file with this header."""
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + body


def told(descr: str, shape: str) -> bytes:
    """Return a header as NumPy writes it."""
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()


IMPOSSIBLE = {
    "no header": b"",
    "cut": b"\x93NUMPY\1",
    "version": npy(told("'<f8'", "(0,)"), version=b"\7\0"),
    "10^13 numbers": npy(told("'<f8'", "(10000000000000,)"), bytes(80)),
    "negative": npy(told("'<f8'", "(-1, -1)"), bytes(8)),
    "no bytes of 10^13": npy(told("'<U0'", "(10000000000000,)")),
    "9000 brackets": npy(b"(" * 9000),
    "20000 characters": npy(b" " * 20_000),
    "null byte": npy(b"{\0}"),
    "objects": npy(told("'|O'", "(1,)"), bytes(8)),
    "no shape": npy(told("'<f8'", "7"), bytes(56)),
    "no type": npy(told("'<q77'", "(1,)"), bytes(8)),
    "one byte less": npy(told("'<f8'", "(2,)"), bytes(15)),
    "one byte more": npy(told("'<f8'", "(2,)"), bytes(17)),
}


@pytest.mark.parametrize("data", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_array_is_one_line(data: bytes) -> None:
    """A header that no array has, or that promises more than follows, is refused as it is, alone and in an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", data)
    for read in (lambda: read_array(data), lambda: read_arrays(stream.getvalue())):
        with pytest.raises(ParseError, match=r"^not an array: [^\n]+$"):
            read()


def test_numpy_itself_raises_what_nobody_expects() -> None:
    """The reason for a reader of our own: NumPy allocates such a shape and lets Python's tokenizer fail."""
    with pytest.raises(MemoryError):
        np.lib.format.read_array(io.BytesIO(IMPOSSIBLE["10^13 numbers"]), allow_pickle=False)
    with pytest.raises((tokenize.TokenError, SyntaxError, MemoryError, RecursionError)):
        np.lib.format.read_array(io.BytesIO(IMPOSSIBLE["9000 brackets"]), allow_pickle=False)


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"PK\3\4 and more", b"PK\5\6" + bytes(18)])
def test_what_is_no_archive_is_one_line(data: bytes) -> None:
    """Nothing, a beginning alone, and an archive without a member."""
    with pytest.raises(ParseError, match=r"^not a npz file[^\n]*$"):
        read_arrays(data)


def test_a_damaged_archive_is_one_line() -> None:
    """A bit turned anywhere in a packed archive gives the arrays, other numbers, or one line; nothing else."""
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.arange(50), b=np.array(["x", "yy"]))
    whole = stream.getvalue()
    refused = []
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 0x55
        try:
            read_arrays(bytes(data))
        except ParseError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert not any("\n" in words for words in refused)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array("one text"),
        np.zeros((0, 3)),
        np.array([(1, b"a")], dtype=[("n", "<i8"), ("t", "S4")]),
    ],
    ids=["rows", "columns", "scalar", "empty", "records"],
)
def test_a_good_array_is_read_equal(array: np.ndarray) -> None:
    """What NumPy writes is read as NumPy reads it, and can be changed."""
    stream = io.BytesIO()
    np.save(stream, array)
    found = read_array(stream.getvalue())
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert np.array_equal(found, array)
    assert found.flags.writeable
