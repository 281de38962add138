"""Whether the hub can play queues: the simulator is an extra, and its loops are compiled at the first question."""

from gpuwaste.core.errors import MAX_WORDS
from gpuwaste.core.refusal import NOT_INSTALLED, Refusal


def need_simulator() -> None:
    """Load what plays queues. Raises Refusal where it is not installed, or the service may not compile."""
    try:
        from gpuwaste.plan.start_time import expectation  # noqa: F401, PLC0415 needs the extra `sim`
    except ModuleNotFoundError as error:
        raise Refusal(
            NOT_INSTALLED,
            f"the simulator is not installed: no module {error.name}: install gpuwaste with its extra [sim] on the"
            " hub's host",
        ) from error
    except OSError as error:  # numba looks whether memory may be executed
        reason = str(error).splitlines()[0][:MAX_WORDS]
        raise Refusal(
            NOT_INSTALLED,
            f"the simulator cannot compile its loops: {reason}: add etc/systemd/50-simulator.conf to the hub's unit as"
            " a drop-in (gpuwaste-sim installs it) and restart the hub",
        ) from error
