"""One ONNX graph, ready to run: no threads of its own, input "features", output "raw".

Thread safety: `Session.run` may be called from several threads at once. The buffers of the one-row path belong to the
thread that holds the lock; a second caller at that moment takes the general path, which allocates.
"""

import threading
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.onnx_runtime import onnxruntime
from gpuwaste.core.errors import ModelError
from gpuwaste.core.text import words_of

INPUT: Final = "features"
OUTPUT: Final = "raw"
Vectors = NDArray[np.float32]
_SILENT: Final = 4  # ONNX Runtime's severity "fatal": the exception already reports errors
_FLOAT: Final = "tensor(float)"


class Session:
    """A loaded graph of `width` features and `outputs` values a row."""

    def __init__(self, data: bytes, where: str) -> None:
        """Load a graph from its bytes; `where` names it in errors. Raises ModelError."""
        try:
            self._session = onnxruntime.InferenceSession(data, _options(), providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises a class of its own for each status, and RuntimeError
            raise ModelError(
                f"{where}: ONNX Runtime rejects it: {words_of(error)}: install the bundle again"
            ) from error
        self.where = where
        self.width, self.outputs = self._shapes()
        self._lock = threading.Lock()
        self._row = np.zeros((1, self.width), dtype=np.float32)
        self._result = np.zeros((1, self.outputs), dtype=np.float32)
        self._binding = self._session.io_binding()
        # On the CPU both values use the arrays' own memory: one row costs two small copies and no allocation.
        self._held = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in (self._row, self._result)]
        self._binding.bind_ortvalue_input(INPUT, self._held[0])
        self._binding.bind_ortvalue_output(OUTPUT, self._held[1])

    @property
    def metadata(self) -> Mapping[str, str]:
        """The graph's own properties, as its export wrote them."""
        values: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        return values

    def run(self, vectors: Vectors) -> NDArray[np.float32]:
        """Return float32 [n, outputs] of float32 [n, width]. Raises ModelError for another shape."""
        if vectors.ndim != 2 or vectors.shape[1] != self.width:  # noqa: PLR2004 rows and columns
            raise ModelError(f"{self.where}: {vectors.shape} is not [n, {self.width}]: vectors of another version")
        if len(vectors) == 1 and self._lock.acquire(blocking=False):
            try:
                self._row[:] = vectors
                self._session.run_with_iobinding(self._binding)
                return self._result.copy()
            finally:
                self._lock.release()
        whole = np.ascontiguousarray(vectors, dtype=np.float32)
        result: NDArray[np.float32] = self._session.run([OUTPUT], {INPUT: whole})[0]
        return result

    def _shapes(self) -> tuple[int, int]:
        """Return the numbers of features and outputs. Raises ModelError if the graph does not have this form."""
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        form = [(value.name, value.type, len(value.shape)) for value in (*inputs, *outputs)]
        sizes = [value.shape[-1] if value.shape else None for value in (*inputs, *outputs)]
        if form != [(INPUT, _FLOAT, 2), (OUTPUT, _FLOAT, 2)] or not all(isinstance(s, int) and s > 0 for s in sizes):
            raise ModelError(
                f"{self.where}: expected {INPUT} float [n, F] -> {OUTPUT} float [n, k], found {form}: "
                "export the bundle with gpuwaste model train"
            )
        width, values = (int(s or 0) for s in sizes)
        return width, values


def _options() -> onnxruntime.SessionOptions:
    """Use one thread that never spins: with the default pool the slowest call of a row takes milliseconds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = _SILENT
    return options
