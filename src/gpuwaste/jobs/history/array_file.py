"""Arrays from untrusted NumPy files, npy or npz: no pickle, and no memory is allocated before the size is checked.

NumPy trusts a header: a shape of 10^13 is allocated, and a header that is not a Python literal raises any error of its
parser. Here the header is first compared with the bytes that follow it.
"""

import io
import zipfile
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of

MOST_B: Final = 1 << 30
_ZIP: Final = b"PK\x03\x04"
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
Arrays = dict[str, NDArray[Any]]


def read_arrays(data: bytes, most_b: int = MOST_B) -> Arrays:
    """Return the arrays of a npz file by name; together they have at most `most_b` bytes. Raises ParseError."""
    if not data.startswith(_ZIP):  # zipfile reads archives with anything before them
        raise ParseError("not a npz file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            large = sum(member.file_size for member in members) > most_b
            contents = {} if large else {member.filename: _content(archive, member) for member in members}
    except Exception as error:  # zipfile and its decompressors raise errors of many kinds
        raise ParseError(f"not a npz file: {_reason(error)}") from error
    if large:
        raise ParseError(f"more than {most_b} bytes unpacked")
    return {name.removesuffix(".npy"): read_array(content) for name, content in contents.items()}


def read_array(data: bytes) -> NDArray[Any]:
    """Return the array of a npy file. Raises ParseError."""
    stream = io.BytesIO(data)
    try:
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
        size, found = prod(shape) * dtype.itemsize, len(data) - stream.tell()
    except Exception as error:
        raise ParseError(f"not an array: {_reason(error)}") from error
    if dtype.hasobject or not dtype.itemsize or any(each < 0 for each in shape) or size != found:
        raise ParseError(f"not an array: its header has {dtype} {str(shape)[:60]}, {found} bytes follow")
    if not size:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, prod(shape), stream.tell()).reshape(shape, order="F" if fortran else "C").copy()


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as stream:
        return stream.read(member.file_size + 1)


def _reason(error: Exception) -> str:
    return words_of(error, 200) or type(error).__name__
