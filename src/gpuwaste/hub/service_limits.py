"""ServiceLimits: what a client of the hub may take."""

from dataclasses import dataclass, field

from gpuwaste.hub.admission_control import AdmissionLimits


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a client may take: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = 1024 * 1024
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: AdmissionLimits = field(default_factory=AdmissionLimits)
