"""How a hub that stands by marks its answers: it has done nothing with the request, so the next hub may be asked."""

from typing import Final

ROLE_HEADER: Final = "Gpuwaste-Role"
STANDS_BY: Final = "stands-by"
