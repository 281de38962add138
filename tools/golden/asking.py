"""All that is asked, in one order: the API, the pages, the commands, the mails."""

from collections.abc import Iterator
from contextlib import chdir
from itertools import chain
from pathlib import Path

from tools.golden.masks import masked
from tools.golden.questions import api, commands, pages
from tools.golden.site import NOW
from tools.golden.story import lay_out, made, tell
from tools.golden.world import World, running_world


def answers(folder: Path) -> dict[str, str]:
    """Return each answer by its name."""
    site = made()
    lay_out(folder)
    found: dict[str, str] = {}
    with chdir(folder), running_world(folder, NOW, [job for job in site.jobs if job.cluster == "gw"]) as world:
        for name, text in chain(
            ((f"told/{name}", api.text_of(answer)) for name, answer in tell(world, site)),
            api.asked(world, site),
            pages.asked(world, site),
            commands.asked(world, site),
            commands.of_files(world),
            _mails(world),
            api.metrics(world),
        ):
            known = masked(name, folder)
            if known in found:
                raise ValueError(f"{known}: two answers of one name")
            found[known] = masked(text, folder)
    return found


def _mails(world: World) -> Iterator[tuple[str, str]]:
    """Yield the mails that the hub has sent, without the heads that name this moment and this host."""
    for number, mail in enumerate(sorted(world.mail.received, key=lambda one: (one.to, one.text))):
        message = mail.message
        heads = "".join(f"{name}: {message[name]}\n" for name in ("From", "To", "Subject"))
        yield f"mail/{number}", f"{heads}\n{mail.text}"
