"""notify: a mail to the run's user, to staff or to the sponsor of its account.

The hub sends it, since it has the mail server and the addresses.
"""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, ActionOption, choice, line, lines

_SUBJECT: Final = 150
_TEXT: Final = 8000
USER: Final = "user"
STAFF: Final = "staff"
SPONSOR: Final = "sponsor"

KIND: Final = ActionKind(
    name="notify",
    about="Send a mail to the job's user, to staff or to the sponsor of its account.",
    subject="any",
    needs="none",
    undo="",
    options=(
        ActionOption("subject", f"one line of at most {_SUBJECT} characters", line(_SUBJECT)),
        ActionOption("text", f"at most {_TEXT} characters", lines(_TEXT)),
        ActionOption(
            "to",
            "user (the job's user), staff ([notify] staff), or sponsor (who answers for the job's account)",
            choice(USER, STAFF, SPONSOR),
            USER,
        ),
    ),
)
