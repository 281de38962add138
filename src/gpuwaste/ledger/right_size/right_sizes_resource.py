"""What the last runs of the caller's jobs say of the size of the next request: /v1/right-sizes."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from gpuwaste.core.fields import Name
from gpuwaste.core.refusal import FORBIDDEN, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.right_size.size_types import RightSizesDocument, SizeTableAnswer
from gpuwaste.show.resource import NoQuestion, Reading, Resource


@dataclass(frozen=True)
class RightSizesQuestion:
    """Whose jobs."""

    user: Annotated[Name | None, Meta(description="of jobs of this user; default: the caller")] = None


def right_sizes(reading: Reading, scope: Scope, question: RightSizesQuestion) -> RightSizesDocument:
    """List findings about the size of requests: users see their own, operators those of any user."""
    from gpuwaste.ledger.right_size.keeper import RightSizes

    user = question.user or scope.user
    if not user or not (scope.everything or user == scope.user):
        raise not_found()
    return RightSizesDocument(generated=reading.now(), user=user, sizes=reading.get(RightSizes).of_user(user))


def size_table(reading: Reading, scope: Scope, _: NoQuestion) -> SizeTableAnswer:
    """Return the smaller requests that past runs would have fitted, of all users; for operators and advisors."""
    from gpuwaste.ledger.right_size.keeper import RightSizes

    if not (scope.everything or scope.agent):
        raise Refusal(FORBIDDEN, "only operators and advisors may read the sizes of all users")
    return reading.get(RightSizes).table()


RESOURCES = (
    Resource(path="/v1/right-sizes/table", question=NoQuestion, document=SizeTableAnswer, read=size_table),
    Resource(path="/v1/right-sizes", question=RightSizesQuestion, document=RightSizesDocument, read=right_sizes),
)
