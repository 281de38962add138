"""/helpdesk: a job id is entered, and the cause, its evidence and a reply to its owner come back."""

from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.ledger.fix_words import fix_steps
from gpuwaste.ledger.reports.job_page import evidence_of, job_sentence
from gpuwaste.ledger.reports.report_types import FindingRow, JobDocument
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_words import cut

_FINDINGS: Final = 3
_EVIDENCE: Final = 8
_FIXES: Final = 4


def helpdesk_page(document: JobDocument | None, url: str, frame: Frame) -> str:
    """Return the page: the form alone, or with the answer for a job; `url` is where the pages are, "" for not known."""
    answer = None if document is None else {"document": document, "reply": reply(document, url)}
    sentence = "Help desk: what did a job waste, and why?" if document is None else job_sentence(document)
    return page("helpdesk", frame, sentence=sentence, answer=answer, evidence_of=evidence_of)


def reply(document: JobDocument, url: str) -> Markup:
    """Return a reply to the owner of a job: plain text, escaped, each line without controls."""
    findings = document.findings[:_FINDINGS]
    lines = [f"Hello {cut(document.runs[0].user)},", "", job_sentence(document), ""]
    for finding in findings:
        lines += [*_cause(finding), ""]
    if not findings:
        lines += ["gpuwaste has found no cause of waste in this job.", ""]
    where = f"{url}/jobs/{document.printed_id}" if url else f"gpuwaste job {document.printed_id}"
    lines.append(f"All figures of the job: {where}")
    return Markup("\n").join(map(harmless, lines))


def _cause(finding: FindingRow) -> list[str]:
    """Return the cause, its evidence and what changes it."""
    lines = [f"Cause: {cut(finding.title, 200)}."]
    lines += [f"  {name}: {value}" for name, value in evidence_of(finding)[:_EVIDENCE]]
    for step in fix_steps(finding.fixes[:_FIXES]):
        lines += [cut(step.text, 400), *(f"  {cut(line, 400)}" for line in step.lines[:_FIXES])]
    return lines
