"""BatchFolder: the hub that serves merges the batches that hubs standing by have left in the lake's inbox.

A batch goes through the receiver that takes such batches over HTTP. Its rows, the quarantined ones, and how far the
inbox is merged are one commit: a hub that is killed before the commit has changed nothing, and the next one begins
with the same batch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker
from gpuwaste.hub.batch_receiver import BatchReceiver, OpenedBatch
from gpuwaste.jobs.importers.accounting_importer import QuarantinedRows
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import Aside, HubStore, put_aside
from gpuwaste.store.hub.inbox import Arrival, InboxBacklog, InboxPage, note_folded, page, turn, waiting

LOOK_S: Final = 1.0
_TURN_LOOKS: Final = 30
_RETRY_S: Final = 5.0
_TRIES: Final = 3  # for one batch, while others can be written
_FAILED: Final = log_event.error(
    "inbox-not-merged: cannot merge the batches that standby hubs have accepted, retry in {seconds:.0f} s: {error}",
    "The store cannot be written: see the error. The batches are kept in the lake, and are in no report until then.",
)
_AGAIN: Final = log_event.info("inbox-merged-again: batches of the inbox are merged again after {failures} failures")
_BACKLOG: Final = log_event.info(
    "inbox-merged: {batches} batches merged that standby hubs accepted while no hub was active"
)
_SET_ASIDE: Final = log_event.error(
    "batch-set-aside: a batch of {sender} cannot be stored, all its rows are quarantined: {error}",
    "Please report the line: the rows were acknowledged, and are in table quarantine, not in reports.",
)


class BatchFolder:
    """Merges the inbox on the thread `worker`."""

    def __init__(
        self, store: HubStore, receivers: Sequence[BatchReceiver[Any]], clock: Clock, quarantined: QuarantinedRows
    ) -> None:
        self._store = store
        self._clock = clock
        self._receivers: Mapping[str, BatchReceiver[Any]] = {one.path: one for one in receivers}
        self._quarantined = quarantined
        self._trouble = RepeatSuppressor()
        self._looks = 0
        self.merged = 0
        """Batches since the start."""
        self.worker = Worker("inbox", self._look, clock)

    def waiting(self) -> InboxBacklog:
        """Return what is not merged yet. Raises StoreError."""
        with self._store.reader() as db:
            return waiting(db)

    def step(self) -> int:
        """Merge all waiting batches, unless the worker is to stop; returns how many. Raises StoreError."""
        before = self.merged
        while not self.worker.stopping.is_set():
            with self._store.reader() as db:
                found = page(db)
            if found is None:
                break
            self._merge(found)
        return self.merged - before

    def _look(self) -> float:
        self._looks += 1
        try:
            merged = self.step()
            if self._looks % _TURN_LOOKS == 0:
                turn(self._store, self._clock.utc_us())
        except StoreError as error:
            if self._trouble.news(""):
                _FAILED.log(error=error, seconds=_RETRY_S)
            return _RETRY_S
        if merged and self._looks == 1:
            _BACKLOG.log(batches=merged)
        if self._trouble.times:
            _AGAIN.log(failures=self._trouble.over())
        return LOOK_S

    def _merge(self, found: InboxPage) -> None:
        """Merge a page in one commit; where that fails, each batch on its own, so that none waits for another one's."""
        try:
            self._commit(found.arrivals, lambda db: note_folded(db, found.until))
        except StoreError:
            self._check_writing()
        except ParseError:
            pass
        except Exception as error:  # noqa: BLE001 a defect with one batch must not keep the others for ever
            BUG.log(error, what="merge of the inbox")
        else:
            self.merged += len(found.arrivals)
            return
        # After a kill here they are merged again, which changes nothing: each row has a key.
        refused = [(one, reason) for one in found.arrivals if (reason := self._tried(one))]
        with self._store.writing() as db:
            for one, reason in refused:
                self._put_aside(db, one, dict.fromkeys(range(1, one.body.count(b"\n") + 2), reason))
            note_folded(db, found.until)
        self.merged += len(found.arrivals)
        for one, reason in refused:
            _SET_ASIDE.log(sender=one.sender, error=reason)

    def _tried(self, one: Arrival) -> str:
        """Merge a batch on its own; returns why that fails. Raises StoreError where nothing can be written."""
        reason = ""
        for _ in range(_TRIES):
            try:
                self._commit([one], lambda _: None)
            except StoreError as error:
                reason = str(error)
                self._check_writing()
            except ParseError as error:
                return str(error)
            except Exception as error:  # noqa: BLE001 as above
                BUG.log(error, what="merge of a batch of the inbox")
                return repr(error)
            else:
                return ""
        return reason

    def _check_writing(self) -> None:
        """Raise StoreError where nothing can be written now."""
        with self._store.writing():
            pass

    def _commit(self, arrivals: Sequence[Arrival], place: Callable[[Database], None]) -> None:
        """Validate batches and write their rows, and the place in the inbox, in one transaction."""
        unknown = {one.kind for one in arrivals} - self._receivers.keys()
        if unknown:
            raise ParseError(f"this version does not know batches of {', '.join(sorted(unknown))}")
        opened = [
            (receiver, receiver.opened(mine))
            for kind, receiver in self._receivers.items()
            if (mine := [one for one in arrivals if one.kind == kind])
        ]
        with self._store.writing() as db:
            counts = [receiver.merge(db, batches) for receiver, batches in opened]
            for _, batches in opened:
                for batch in batches:
                    self._put_aside(db, batch.arrival, batch.rejected)
            place(db)
        for count in counts:
            count()
        for receiver, batches in opened:
            self._said(receiver, batches)

    def _said(self, receiver: BatchReceiver[Any], batches: Sequence[OpenedBatch[Any]]) -> None:
        for batch in batches:
            receiver.say(batch.envelope, batch.rejected)
            if batch.rejected:
                self._quarantined.add(receiver.what, len(batch.rejected))

    def _put_aside(self, db: Database, batch: Arrival, rejected: Mapping[int, str]) -> None:
        """Quarantine rows that were acknowledged and cannot be stored, with the reason."""
        if not rejected:
            return
        lines = batch.body.split(b"\n")
        source = self._receivers[batch.kind].what if batch.kind in self._receivers else batch.kind
        rows = [Aside(line, reason, lines[line - 1].decode(errors="replace")) for line, reason in rejected.items()]
        put_aside(db, source, [row for row in rows if row.raw], self._store.now())
