"""TrainingProgress of a long training: bars on a terminal, plain lines elsewhere, and how long each stage took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm


class TrainingProgress:
    """Stages one after the other; `seconds` has the duration of each. Without a stream it only keeps the times."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._stream = stream
        self._bars = stream is not None and stream.isatty()

    @contextmanager
    def stage(self, name: str, total: int = 0) -> Iterator[Callable[[], None]]:
        """Show a stage of `total` steps (0: unknown); yield a function to call after each step."""
        began = time.perf_counter()
        with tqdm(total=total or None, desc=name, file=self._stream, disable=not self._bars, leave=False) as bar:
            yield bar.update
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        if self._stream is not None:
            self._stream.write(f"{name}: {time.perf_counter() - began:.1f} s\n")
            self._stream.flush()
