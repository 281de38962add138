"""IntentSink: who takes what rules want done."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gpuwaste.act.rules.intent import Intent


class IntentSink(Protocol):
    """Takes intents; one that it has is left out, so that what was not noted after a crash may be handed over again."""

    def intend(self, intents: Sequence[Intent]) -> object:
        """Take them up. Raises StoreError."""
        ...

    def withdraw(self, over: Collection[tuple[str, str]]) -> object:
        """Drop what is not done yet of these rules for these subjects. Raises StoreError."""
        ...

    def waiting(self) -> Sequence[Intent]:
        """Return what is not done yet. Raises StoreError."""
        ...

    def drop(self, reasons: Mapping[str, str]) -> object:
        """Drop what is not done yet of these ids, each with its reason. Raises StoreError."""
        ...

    def confirm(self, notices: Mapping[str, str], for_s: float) -> object:
        """Let what a pass found still to be wanted be done within this time, and nothing else that a rule wants.

        It is by id, with the id of the notice that must have been sent before, "" for none. Raises StoreError.
        """
        ...
