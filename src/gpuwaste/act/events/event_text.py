"""The catalogue, the outlets and the inlets as text for a terminal."""

from gpuwaste.act.events.event_types import CatalogueDocument, InletRow, InletsDocument, OutletRow, OutletsDocument
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import fit, local_time

_SHOWN = 20


def kinds_text(document: CatalogueDocument, look: Look) -> str:
    """Render each kind with its sentence."""
    lines = look.title("Kinds of events") if look.header else []
    width = max(len(row.kind) for row in document.kinds)
    lines += [f"  {row.kind:<{width}}  {row.about}" for row in document.kinds]
    return "\n".join(lines) + "\n"


def outlets_text(document: OutletsDocument, look: Look) -> str:
    """Render the state of outlets, and the events rejected last."""
    if not document.outlets:
        return "no outlets are set: the hub sends no events\n"
    lines = look.title("Outlets") if look.header else []
    for row in document.outlets:
        lines += _outlet(row, look)
    if document.refused:
        lines += ["", "Rejected events, the newest first:"]
        lines += [
            f"  {local_time(row.at, look.zone)}  {fit(row.outlet, 16):<16}  {fit(row.kind, 16):<16}  {row.reason}"
            for row in document.refused[:_SHOWN]
        ]
    return "\n".join(lines) + "\n"


def _events(count: int) -> str:
    return "event" if count == 1 else "events"


def _outlet(row: OutletRow, look: Look) -> list[str]:
    waits = "no events queued" if not row.behind else f"{row.behind:,} {_events(row.behind)} queued"
    since = f", the oldest from {local_time(row.oldest, look.zone)}" if row.oldest is not None and row.behind else ""
    refused = f", {row.refused:,} rejected" if row.refused else ""
    lines = [f"  {fit(row.name, 16):<16}  {fit(row.way, 8):<8}  {waits}{since}{refused}"]
    if row.failures:
        lines.append(f"  {'':16}  {row.failures:,} failed attempts, the last: {row.error}")
    return lines


def inlets_text(document: InletsDocument, look: Look) -> str:
    """Render the state of inlets."""
    if not document.inlets:
        return "no inlets are set: the hub accepts no events of other systems\n"
    lines = look.title("Inlets, since the hub's start") if look.header else []
    for row in document.inlets:
        lines += _inlet(row)
    return "\n".join(lines) + "\n"


def quarantine_text(document: InletsDocument, look: Look) -> str:
    """Render the events that inlets have quarantined, and why."""
    if not document.quarantine:
        return "no events are quarantined\n"
    lines = look.title("Quarantined events, the newest first") if look.header else []
    for row in document.quarantine:
        named = f"{fit(row.inlet, 16):<16}  {fit(row.kind or '-', 24):<24}  {fit(row.id or '-', 36)}"
        lines += [f"  {local_time(row.at, look.zone)}  {named}", f"  {'':19}  {row.reason}"]
    return "\n".join(lines) + "\n"


def _inlet(row: InletRow) -> list[str]:
    counts = f"{row.accepted:,} accepted, {row.repeated:,} repeated, {row.quarantined:,} quarantined"
    lines = [f"  {fit(row.name, 16):<16}  {fit(row.way, 8):<8}  {counts}, {row.refused:,} requests rejected"]
    if row.failures:
        lines.append(f"  {'':16}  {row.failures:,} failed attempts, the last: {row.error}")
    return lines
