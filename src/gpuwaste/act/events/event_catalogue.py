"""The catalogue of events as a document."""

from gpuwaste.act.events.event_types import CatalogueDocument, KindRow
from gpuwaste.jobs.events.catalogue import PREFIX, catalogue


def catalogue_document() -> CatalogueDocument:
    """Return every kind of this version with its schema."""
    kinds = [
        KindRow(kind=kind.name, type=PREFIX + kind.name, about=kind.about, schema=kind.schema())
        for kind in catalogue().values()
    ]
    return CatalogueDocument(kinds=kinds)
