"""What each line of the submit plugins in slurmctld's log means and asks for."""

from typing import Final

PLUGIN: Final = {
    "gpuwaste: advisor at {}: {}; jobs pass unseen, it is asked again after {} ms": (
        "The breaker is open; why: no advisor, a late one, a strange process, a reply of another version. "
        "`gpuwaste doctor` on this host. No job waits for it."
    ),
    "gpuwaste: advisor at {}: refused: {}; the job passes": (
        "A reply that is not believed, or cannot be read: that job passes. After some in a row the breaker opens."
    ),
    "gpuwaste: advisor at {} answers again": "Nothing.",
    "gpuwaste: {}:{}: {}; the default holds": "A line of gpuwaste.toml that it cannot read: `gpuwaste config check`.",
    "gpuwaste: {}: {} more lines were not understood": "The same.",
    "gpuwaste: {}: {}; the defaults hold": "gpuwaste.toml cannot be read by slurmctld's user: `chmod 644`.",
    "gpuwaste: no user {} (advisor_user): until there is, only an advisor that runs as root is believed": (
        "Make the user on this host, or set `[plugin] advisor_user`."
    ),
    "gpuwaste: looking up user {} (advisor_user) takes long; jobs accepted without advice until then": (
        "The directory service (sssd, LDAP) does not answer: try `getent passwd` with that name. Meanwhile only an "
        "advisor that runs as root is believed."
    ),
    "gpuwaste: out of memory: all jobs pass unseen": "slurmctld was short of memory at its start: restart it.",
    "gpuwaste: {} asked, {} answered, {} missed, {} refused": "Nothing: the plugin's sums when slurmctld unloads it.",
}
"""What the submit plugins write to slurmctld's log, as the C code has it."""
