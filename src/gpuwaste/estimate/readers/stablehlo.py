"""StableHLO, text or bytecode: jaxlib converts it to HLO for the HLO reader."""

from typing import BinaryIO, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import Program
from gpuwaste.estimate.readers import hlo
from gpuwaste.estimate.readers.hlo_text import without_leading

TITLE: Final = "StableHLO"
MAX_FILE_B: Final = 64 << 20
SMALLER: Final = ": write it without large constants"
NATIVE: Final = True
_BYTECODE: Final = b"ML\xefR"
_MARKS: Final = (b"module @", b"module {", b"module attributes", b"#loc", b"stablehlo.")


def recognizes(head: bytes) -> bool:
    """Return whether a file begins like MLIR."""
    begun = without_leading(head)
    return head.startswith(_BYTECODE) or any(map(begun.startswith, _MARKS[:-1])) or _MARKS[-1] in head


def read(stream: BinaryIO, name: str) -> Program:
    """Read a program. Raises ParseError, also where jaxlib is missing."""
    try:
        from jaxlib import _jax  # noqa: PLC0415 - optional, and 300 MB
    except ImportError as error:
        raise ParseError(
            "StableHLO needs jaxlib 0.10 on this host, which cannot be loaded: install it, or write HLO text with "
            'lower(...).as_text(dialect="hlo")'
        ) from error
    data = stream.read(MAX_FILE_B + 1)
    try:
        text = data if data.startswith(_BYTECODE) else data.decode("utf-8")
        computation = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
        written: str = computation.as_hlo_text()
    except (RuntimeError, ValueError, AttributeError, TypeError, UnicodeDecodeError) as error:
        first = str(error).strip().splitlines()
        raise ParseError(
            f"jaxlib cannot read the program: {first[0][:160] if first else type(error).__name__}"
        ) from None
    return hlo.read_text(written.splitlines(), name, source="stablehlo")
