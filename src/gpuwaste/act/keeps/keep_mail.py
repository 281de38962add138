"""What the hub adds to a mail of a rule to the owner of a run: how to answer it."""

from urllib.parse import quote

_WEB = "https://", "http://"


def answer_lines(printed_id: str, hours: float, url: str) -> list[str]:
    """Return the command that keeps the job, and the address of its page where pages have one.

    `hours` is the longest keep of the site; 0: the site permits none.
    """
    lines = []
    if hours > 0:
        span = f"{max(int(min(hours, 4.0) * 60), 1)}m" if hours < 1 else f"{int(min(hours, 4.0))}h"
        lines += [
            "",
            "If you need the job as it is, keep it: the rule waits.",
            "",
            f'  gpuwaste keep {printed_id} --for {span} --reason "..."',
        ]
    lines += ["", "If this mail is wrong, or the job was ended, write to the operators:", ""]
    lines.append(f'  gpuwaste appeal {printed_id} --reason "..."')
    if url.startswith(_WEB):
        lines += ["", f"The job's page: {url.rstrip('/')}/jobs/{quote(printed_id, safe='+')}"]
    return lines
