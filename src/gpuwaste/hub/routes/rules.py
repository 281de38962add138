"""/v1/rules: the site's rules, what one makes of a job now, what it would have done on history; for operators."""

from fastapi import FastAPI, Request, Response

from gpuwaste.act.rules.rule_types import LookDocument, ReplayDocument, RuleQuestion, RulesDocument
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers, body


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    rules = exchange.services.rules

    @app.get("/v1/rules", responses=answers(RulesDocument))
    async def listed(request: Request) -> Response:
        """List the rules in use and what they did in the last 30 days."""
        return await exchange.document(request, rules.rules)

    @app.post("/v1/rules/look", responses=answers(LookDocument), openapi_extra=body(RuleQuestion))
    async def look(request: Request) -> Response:
        """Return what a rule, sent with the question, makes of a job or node now; nothing is done or recorded."""
        return await exchange.order(request, rules.look)

    @app.post("/v1/rules/replay", responses=answers(ReplayDocument), openapi_extra=body(RuleQuestion))
    async def replay(request: Request) -> Response:
        """Return what a rule, sent with the question, would have done in a window of the history."""
        return await exchange.order(request, rules.replay)
