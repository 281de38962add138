"""ServiceLimits: what a client of the hub may take."""

from dataclasses import dataclass, field

from gpuwaste.hub.admission_control import AdmissionLimits
from gpuwaste.net.batch import MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a client may take: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = MAX_BATCH_BYTES
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: AdmissionLimits = field(default_factory=AdmissionLimits)
