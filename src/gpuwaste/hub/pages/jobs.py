"""/jobs/ID within the reader's scope: a foreign job is not found, as one that is not there."""

from fastapi import Response

from gpuwaste.hub.pages.forms import in_form, split_form
from gpuwaste.hub.reads import Reads
from gpuwaste.hub.roles import Scope
from gpuwaste.web.environment import Frame
from gpuwaste.web.pages.job import job_page


class JobViews:
    """The page of a job."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def answer(self, scope: Scope, frame: Frame, name: str) -> Response:
        """Answer for a job, array or het job, as Slurm prints its id. Raises Refusal."""
        job_id, form = split_form(name)
        document = self._reads.job(scope, job_id, hours=True)
        return in_form(form, lambda: job_page(document, frame), lambda: document)
