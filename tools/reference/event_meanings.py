"""What each warning and error of the log means and asks for: by (module, words), as events.py reads them."""

from typing import Final

DEFECT: Final = (
    "A defect of gpuwaste; the line ends with where. What was being done is left, the service goes on. Report it."
)
SHOWN: Final = {
    ("wire.shipper", "{}"): "hours are not shipped, they wait in the outbox: {}",
    ("agent.guard", "{}: {}"): "nvml: {}",
    ("agent.sampler", "{}: {}"): "hours: {}",
    ("agent.daemon", "{}: {}"): "restore: {}",
}
"""Words that are put together elsewhere: one of those that come."""

MEANINGS: Final[dict[tuple[str, str], str]] = {
    ("advisor.daemon", "policies are not reloaded, those before stay in force: {}"): (
        "`gpuwaste policy check` says the same: mend the file, then reload."
    ),
    ("advisor.desk", "{}: it passes; further ones are counted"): (
        "What asked is no submit plugin of this version: look who uses the socket. "
        '`gpuwaste_advisor_requests_total{result="unreadable"}` counts.'
    ),
    ("advisor.desk", "a request cannot be judged and passes; further ones are counted: {}"): (
        "The job is queued without advice. The rest says why, often a model that fails: `gpuwaste model status`."
    ),
    ("advisor.feed", "the history is not saved: {}"): (
        "Disk or rights of `[advisor] state_dir`. A restart reads more from the hub; nothing is lost."
    ),
    ("advisor.feed", "the history is not up to date: {}"): (
        "The hub is not reached. Advice ends after `stale_s`; see `hub_url`, the firewall, the hub's log."
    ),
    ("advisor.journal", "{}: verdicts wait in memory, answers go out: {}: free space"): (
        "The disk of `[advisor] state_dir` is full or not writable: make room. Verdicts that wait are lost if it ends."
    ),
    ("advisor.parts", "the hub tells no history: {}"): (
        "At the start the hub is not reached: what was saved here is used, and is stale. As above."
    ),
    ("advisor.parts", "the hub tells a history that cannot be followed"): (
        "Something else than a hub of this version answers at `hub_url`, or it is broken: look there. What was saved "
        "here is used."
    ),
    ("advisor.parts", "what was spent today is not known: {}"): (
        "Policies' budgets begin at zero today. Look at the state directory and its disk."
    ),
    ("advisor.parts", "an event of the history is passed over: {}"): DEFECT,
    ("advisor.parts", "the history is not saved: {}"): "As `advisor.feed` above, at the end.",
    ("advisor.server", "a connection cannot be taken: {}"): (
        "Out of descriptors, mostly: who asks so often? Jobs pass meanwhile."
    ),
    ("advisor.server", "{}; further ones are counted"): (
        "Something that is no submit plugin speaks to the socket; it was hung up on."
    ),
    ("advisor.slurm_facts", "waiting for Slurm: its ClusterName is not known; set [common] cluster"): (
        "slurmctld does not answer and slurm.conf is not found: start slurmctld, or set `cluster`."
    ),
    ("advisor.slurm_facts", "SlurmUser is not known, only root may ask: set [advisor] slurm_user"): (
        "slurmctld runs as SlurmUser and is refused: set the key and restart the advisor."
    ),
    ("advisor.writer", "verdicts stay in the spool: {}"): (
        "The outbox of verdicts cannot be written: disk of `[advisor] state_dir`. They are moved later."
    ),
    ("core.reload", "the configuration is not reloaded, the one before stays in force: {}"): (
        "`gpuwaste config check` says the same: mend the file, then reload."
    ),
    ("hub.app", "a request is not served: {}"): (
        "Slurm, munge or the store did not answer; whoever asked was told to try again. The rest names which."
    ),
    ("hub.backup", "no backup was made: {}"): (
        "The copy could not be written to `[hub] state_dir`: the rest says why, mostly room. The store is as it was."
    ),
    ("hub.batch_taker", "{} are not stored, {}s keep them: {}"): (
        "The hub's disk is full, or its store is not writable: make room. Senders keep everything."
    ),
    ("hub.batch_taker", "a row of {} is rejected, line {}: {}"): (
        "A row that makes no sense; the agent keeps it aside. Compare the versions of both, then report it."
    ),
    ("hub.importer", "{} rows of sacct are kept aside; line {}: {}"): (
        "Accounting holds what cannot be read: table `quarantine` of the hub's store, `gpuwaste history status`."
    ),
    ("hub.importer", "{} runs are open here, but accounting tells them no more"): (
        "`sacctmgr show runawayjobs`; or slurmdbd has purged them."
    ),
    ("hub.importer", "accounting is not read, what is known stays: {}"): (
        "slurmdbd or its database is away; the hub goes on trying and catches up."
    ),
    ("hub.judging", "settled runs are not judged, reports judge them when asked: {}"): (
        "The hub's disk is full, or its store is not writable: the rest says which. Reports are right, and slower."
    ),
    ("hub.live", "the state of the history is not saved: {}"): (
        "Disk or rights of `[hub] state_dir`. The next start replays more of the history."
    ),
    ("hub.map", "the map's question is not answered: {}"): (
        "slurmctld did not answer whose job that is; the agent asks again. Look at slurmctld where it goes on."
    ),
    ("hub.notify.addresses", "{}: no address for {}: expected USER ADDRESS, or USER -"): (
        "A line of `[notify] address_file`; that user gets no mail until it is mended."
    ),
    ("hub.notify.runner", "{} notices were being sent when the hub ended: they are not sent again"): (
        "They may have arrived or not: `gpuwaste notify list` names them (unclear)."
    ),
    ("hub.notify.runner", "a notice to {}: {}: {}"): (
        "The mail server's word on one mail: later is tried again, failed and unclear are not. `gpuwaste notify list`."
    ),
    ("hub.notify.runner", "notices wait: {}"): (
        "Why no notices go out now: the mail server, an address file or command, accounting that is behind. "
        "They wait and are sent when it is over."
    ),
    ("hub.predictions", "predictions are not up to date: {}"): (
        "The history cannot be followed; answers carry the old state. Store or disk: the rest says which."
    ),
    ("hub.roles", "roles are not refreshed, the ones known stay: {}"): (
        "`sacctmgr` did not answer: slurmdbd. Who is operator or coordinator stays as it was known."
    ),
    ("hub.roller", "old hours are not added up by day, they stay as they are: {}"): (
        "The store or its disk refuses: the rest says what. It is tried again every hour; reports are right meanwhile."
    ),
    ("hub.cluster_facts", "node addresses are not refreshed: {}"): (
        "slurmctld did not answer. Hours of a node that is new may be refused until it does; its agent keeps them."
    ),
    (
        "policy.in_use",
        "policies are not read, those before stay in use: {}",
    ): "`gpuwaste policy check`, then mend the file.",
    ("hub.waste_day", "the last day's waste is not counted: {}"): (
        "The store or its disk refuses. Its metrics keep their last value for two hours, then they are gone."
    ),
    ("predict.champion", "the champion is not loaded, {} stays in use: {}"): (
        "The bundle that the link names is broken, of other features, or writable by others: "
        "`gpuwaste model show`, `gpuwaste model rollback`."
    ),
    ("slurm.commands", "names of jobs cannot be asked for: {}"): (
        "`squeue` did not answer while a record of `scontrol show job` was unclear: that job is asked for again."
    ),
    ("slurm.commands", "a record of scontrol was set aside: {}"): (
        "A record that cannot be read without doubt, often for a job's name or comment. That job's GPUs are unknown "
        "to this source. Report it with `scontrol show job -d ID`."
    ),
    ("slurm.commands", "a record of scontrol was set aside: {}; asked again: {}"): "The same, asked for alone.",
    ("slurm.rest_http", "{}: the token travels in the clear: put TLS or a Unix socket before slurmrestd"): (
        "`slurmrestd_url` is http:// to another host: whoever listens there can use the token."
    ),
    ("wire.durable_file", "outbox {} is corrupt ({}): kept as {}; rows in it that were not sent are unknown"): (
        "Often a power cut or a full disk. The time of those rows is unknown in reports; keep the file for a report."
    ),
    ("wire.durable_file", "outbox {} cannot be made smaller: {}"): "Space is not given back now; nothing is lost.",
    ("agent.outbox", "outbox {}: a kept row cannot be read and stays as it is: {}"): (
        "A row from another version, or a damaged one; the others are sent. Report it."
    ),
    ("hub.unaccounted", "{} hours of runs that accounting has not told in {} days were removed"): (
        "Accounting was lost, or a node made these hours up. `[hub] unaccounted_days` is how long they stay."
    ),
    ("wire.request_server", "defect in an answer"): (
        "A scrape or a command was not answered because of a bug in gpuwaste; the daemon goes on. Report the traceback."
    ),
    ("wire.shipper", "the hub refuses {} for good: {}; kept aside in the outbox"): (
        "A row that the hub will never take; the others are not held up. Compare versions, then report it."
    ),
    ("wire.shipper", "the hub refuses large batches: from now on at most {} bytes"): (
        "Nothing to do; a proxy between, or `[hub] max_body_bytes`, is set low."
    ),
    ("wire.shipper", "{}"): (
        "Nothing is lost; the rest says why: hub away, clocks, munge, uid, certificate. "
        "The advisor says `verdicts` instead of hours."
    ),
    ("agent.daemon", "sampler: the sampling thread ended: this is a defect"): (
        "The agent ends with 1 and systemd starts it again. Report the lines before."
    ),
    ("agent.daemon", "sampler: the driver does not answer: stopped without a last row"): (
        "A GPU or its driver hangs: `nvidia-smi`, `dmesg`. The last minutes are unknown."
    ),
    ("agent.daemon", "{}: {}"): (
        "`restore` at the start, `hours` at the end: the outbox cannot be read or written. Disk of `[agent] state_dir`."
    ),
    ("agent.guard", "{}: {}"): (
        "A collector (`nvml`, `pcp`, `host`) cannot read. Its GPU-time is unknown until it works again: "
        "[troubleshooting](../how-to/troubleshooting.md)."
    ),
    ("agent.fold", "raw samples: {}: {}"): "Rights of `[agent] state_dir`, or its disk. Samples wait in segments.",
    ("agent.fold", "raw samples: not folded, next try with the next segment: {}"): (
        "Samples wait in `raw/*.samples`; nothing is lost. Disk, rights, or somebody who has the day's file open."
    ),
    ("agent.fold", "raw samples: {}: this day is left out"): (
        "A day's file cannot be read: what was open at the last end is known up to there. Hours sent are safe."
    ),
    (
        "agent.fold",
        "raw samples: {}: set aside as {}",
    ): "A damaged day file or segment; a new one is begun. Delete it if no use.",
    ("agent.fold", "raw samples: {}: not compacted: {}"): "It stays larger; tried again. Disk or rights.",
    ("agent.node_store", "raw samples: the child that reads them ended with {}"): (
        "Killed or ended early at the agent's start; another one continues, three at most. Out of memory?"
    ),
    ("agent.node_store", "raw samples: {}: next try with the next segment"): (
        "No child process could be started: limits of tasks or memory. Samples wait in segments."
    ),
    ("agent.node_store", "raw samples: the child that folds them ended with {}: next try with the next segment"): (
        "Killed (signal 9: out of memory?) or too slow (signal 14). Samples wait in segments; nothing is lost."
    ),
    (
        "agent.node_store",
        "raw samples: {}: the oldest day was dropped",
    ): "The disk is full: the oldest raw day made room.",
    ("agent.segment", "raw samples: {}: damaged from byte {} to {}: those ticks are lost"): (
        "The disk changed what was written: `dmesg`, `smartctl`."
    ),
    ("agent.node_store", "raw samples: {} cannot be dropped: {}"): "Rights of `[agent] state_dir`: the disk fills up.",
    ("agent.sampler", "clock: the wall clock was set: this interval is unknown"): "Nothing; often: look at chrony.",
    ("agent.sampler", "device map: {}: {}"): DEFECT,
    ("agent.sampler", "{}: {}"): (
        "What was measured cannot be kept: `hours` (outbox), `raw samples` (day files), `health file`. Disk or rights."
    ),
    ("agent.own_node", "start: waiting for Slurm: {}"): (
        "The agent starts when slurmctld answers; is `slurm_conf` right, is slurmctld up?"
    ),
}

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
    "gpuwaste: {}: {}; using the defaults": "gpuwaste.toml cannot be read by slurmctld's user: `chmod 644`.",
    "gpuwaste: no user {} (advisor_user): until it exists, only an advisor that runs as root is accepted": (
        "Create the user on this host, or set `[plugin] advisor_user`."
    ),
    "gpuwaste: looking up user {} (advisor_user) takes long; jobs accepted without advice until then": (
        "The directory service (sssd, LDAP) does not answer: try `getent passwd` with that name. Meanwhile only an "
        "advisor that runs as root is accepted."
    ),
    "gpuwaste: out of memory: all jobs accepted without advice": "slurmctld had no memory at its start: restart it.",
    "gpuwaste: {} asked, {} answered, {} missed, {} refused": "Nothing to do: counters when slurmctld unloads it.",
}
"""What the submit plugins write to slurmctld's log, as the C code has it."""
