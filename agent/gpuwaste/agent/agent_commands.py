"""AgentCommands: what the agent does for whoever asks at its control socket."""

from pathlib import Path
from typing import Any, Final

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.control import ControlServer, release_seconds
from gpuwaste.agent.node_map import NodeMap
from gpuwaste.agent.outbox import HourShipping
from gpuwaste.agent.sampling import Sampling
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.version import own_version

_RELEASE_WAIT_S: Final = 20.0


class AgentCommands(Part):
    """Answers `status` and `release`."""

    def __init__(self, parts: Parts) -> None:
        """Raise GpuwasteError where the socket cannot be made."""
        self._parts = parts
        run_dir = Path(parts.get(Config).common.run_dir)
        self._server = ControlServer(run_dir, {"status": self._status, "release": self._release})

    def before_start(self) -> None:
        """Start to answer."""
        self._server.start()

    def close(self) -> None:
        """Stop to answer."""
        self._server.stop()

    def _status(self, _: dict[str, Any]) -> dict[str, Any]:
        get = self._parts.get
        view, shipping = get(LatestSnapshot).view, get(HourShipping)
        site, sampler = get(AgentPorts).site, get(Sampling).sampler
        seen, shipped = view.seen, shipping.shipper.status
        return {
            "node": site.node,
            "cluster": site.cluster,
            "version": own_version(),
            "samples": view.samples_total,
            "last_sample_us": seen.t_utc_us if seen else None,
            "gpus": len(seen.gpus) if seen else 0,
            "jobs": sorted({holding.job_id for holding in seen.jobs.holdings}) if seen else [],
            "unmapped": dict(seen.jobs.unmapped) if seen else {},
            "collectors": {c.name: c.ok for c in sampler.health},
            "facts": {name: health or "ok" for name, health in get(NodeMap).devices.sources.items()},
            "released_s": sampler.released_for_s,
            "outbox_rows": shipping.depth(),
            "sent_rows": shipped.sent_rows,
            "hub": shipped.last_error or "ok",
        }

    def _release(self, request: dict[str, Any]) -> dict[str, Any]:
        seconds = release_seconds(request)
        closed = self._parts.get(Sampling).sampler.release(seconds, _RELEASE_WAIT_S)
        return {"released": "yes" if closed else "as soon as the driver answers", "for_s": seconds}
