"""A hub without a wire, for who is given a client of it: answers GETs from a table and takes batches in memory."""

from collections.abc import Callable, Mapping
from typing import Any

from gpuwaste.ledger.hour import HourBatch
from gpuwaste.net.batch import Ack, Envelope

Parameters = Mapping[str, str | int]
Document = dict[str, Any] | Callable[[Parameters], dict[str, Any]] | Exception


class MemoryHub:
    """Has a document for each path: the answer, a function of the parameters, or an error to raise.

    `asked` has the parameters of each GET, `jobs` the job of each row that was taken. `judge` may raise, or return what
    it rejects of a batch by line.
    """

    def __init__(self, documents: Mapping[str, Document] | None = None) -> None:
        self.documents = dict(documents or {})
        self.asked: list[Parameters] = []
        self.envelopes: set[Envelope] = set()
        self.jobs: list[int] = []
        self.posts = 0
        self.judge: Callable[[HourBatch], dict[int, str]] = lambda _: {}

    def get(self, path: str, params: Parameters | None = None) -> dict[str, Any]:
        """Answer; a path that has no document is the test's mistake."""
        self.asked.append(params or {})
        document = self.documents[path]
        if isinstance(document, Exception):
            raise document
        return document if isinstance(document, dict) else document(params or {})

    def post_hours(self, envelope: Envelope, batch: HourBatch) -> Ack:
        """Judge the batch and keep what is taken."""
        self.envelopes.add(envelope)
        self.posts += 1
        rejected = self.judge(batch)
        self.jobs += [row.key[1] for line, row in enumerate(batch.rows, start=2) if line not in rejected]
        return Ack(batch.batch_id, len(batch.rows) - len(rejected), rejected)
