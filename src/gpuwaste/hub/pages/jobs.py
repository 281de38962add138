"""/jobs/ID and /helpdesk within the reader's scope: a foreign job is not found, as one that is not there."""

import dataclasses
from urllib.parse import quote

from fastapi import Response
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from gpuwaste.act.events.event_reads import EventReads
from gpuwaste.core.scope import Scope
from gpuwaste.hub.pages.answers import SEE_OTHER, html
from gpuwaste.hub.pages.forms import in_form, split_form
from gpuwaste.hub.pages.question import node_name
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.ledger.disputes.disputes import Disputes
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.helpdesk_page import helpdesk_page
from gpuwaste.ledger.reports.job_page import job_page
from gpuwaste.show.environment import Frame
from gpuwaste.slurm.run import RunKey


class JobViews:
    """The page of a job."""

    def __init__(self, reads: DocumentQueries, disputes: Disputes, visitors: Visitors, events: EventReads) -> None:
        self._reads, self._events = reads, events
        self._disputes = disputes
        self._visitors = visitors

    def answer(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer for a job, array or het job, as Slurm prints its id. Raises Refusal."""
        job_id, form = split_form(name)
        read = frame if form else dataclasses.replace(frame, place=self._events.last())
        found = self._reads.job(scope, job_id, hours=True)
        runs = [RunKey(run.cluster, run.job_id, run.start) for run in found.runs if run.start is not None]
        document = replace(found, disputes=self._disputes.of(runs))
        return in_form(form, lambda: job_page(document, read, node_name(query)), lambda: document)

    def helpdesk(self, scope: Scope, frame: Frame, query: QueryParams, _: str) -> Response:
        """Answer with the cause of a job's waste and a reply to its owner. Raises Refusal."""
        wanted = query.get("id", "").strip()
        document = self._reads.job(scope, wanted) if wanted else None
        return html(helpdesk_page(document, self._visitors.url, frame))

    def dispute(self, scope: Scope, job_id: str, body: bytes) -> Response:
        """Keep what the owner says of the judgement, and show the job again. Raises Refusal."""
        self._disputes.say(scope, job_id, body)
        return RedirectResponse(f"/jobs/{quote(job_id, safe='+')}#disputes", SEE_OTHER)
