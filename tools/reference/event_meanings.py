"""What each line of the submit plugins in slurmctld's log means and asks for."""

from typing import Final

PLUGIN: Final = {
    "gpuwaste: advisor at {}: {}; jobs accepted without advice, retry in {} ms": (
        "The breaker is open, with the reason: no advisor, a timeout, another user's process, a reply of another "
        "version. Run `gpuwaste doctor` on this host. No job is delayed."
    ),
    "gpuwaste: advisor at {}: rejected: {}; job accepted without advice": (
        "A reply that is not trusted or cannot be parsed. After several in a row the breaker opens."
    ),
    "gpuwaste: advisor at {} answers again": "Nothing to do.",
    "gpuwaste: {}:{}: {}; using the default": "A line of gpuwaste.toml cannot be parsed: `gpuwaste config check`.",
    "gpuwaste: {}: {} more lines cannot be parsed": "As above.",
    "gpuwaste: {}: {}; using the {}": (
        "gpuwaste.toml, or a file of gpuwaste.toml.d, cannot be read by slurmctld's user: `chmod 644`."
    ),
    "gpuwaste: {}: over {} files; not all of them are read": "gpuwaste.toml.d has too many files: join some of them.",
    "gpuwaste: no user {} (advisor_user): until it exists, only an advisor that runs as root is accepted": (
        "Create the user on this host, or set `[plugin] advisor_user`."
    ),
    "gpuwaste: looking up user {} (advisor_user) takes long; jobs accepted without advice until then": (
        "The directory service (sssd, LDAP) does not answer: try `getent passwd` with that name. Meanwhile only an "
        "advisor that runs as root is accepted."
    ),
    "gpuwaste: out of memory: all jobs accepted without advice": "slurmctld had no memory at its start: restart it.",
    "gpuwaste: {} requests, {} answered, {} missed, {} refused": "Nothing to do: counters when slurmctld unloads it.",
}
"""What the submit plugins write to slurmctld's log, as the C code has it."""
