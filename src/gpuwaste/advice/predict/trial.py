"""The bundles that are scored beside the model in use: the challenger on trial, and the baseline as a yardstick.

What they say changes no answer. The challenger learns from the ends of runs as the champion does, so that both are
compared with their calibration up to date, and goes on from there where it is promoted.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from gpuwaste.advice.predict.beside import corrections_of
from gpuwaste.advice.predict.bundle import BASELINE, Bundle, load_bundle
from gpuwaste.advice.predict.corrections import BundleCorrections
from gpuwaste.advice.predict.registry import Registry
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.session import Vectors
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.history.follow import Follower

_ON_TRIAL: Final = log_event.info("challenger-loaded: model on trial: {name} {hash}")
_NOT_LOADED: Final = log_event.warning(
    "challenger-not-loaded: cannot load the model on trial: {error}",
    "The bundle is broken, has other features, or is writable by others. `gpuwaste model withdraw` ends the trial.",
)


class ShadowModel:
    """A bundle with its corrections, which is asked for probabilities alone."""

    def __init__(self, bundle: Bundle, rolling: Rolling) -> None:
        self.bundle = bundle
        self.rolling = rolling
        self._targets = frozenset(model.target for model in bundle.manifest.targets if not model.quantiles)

    def probabilities(self, vectors: Vectors, wanted: Collection[str]) -> dict[str, list[float]]:
        """Return for each wanted target that it has the probability of each vector [n, F]. Raises ModelError."""
        return {
            target: [self.rolling.probability(target, float(raw)) for raw in self.bundle.raw(target, vectors)[:, 0]]
            for target in sorted(self._targets & frozenset(wanted))
        }


class ModelTrial:
    """Follows the registry's link `challenger`; a bundle that cannot be loaded is scored by nobody."""

    def __init__(self, models_dir: Path, rolling_path: Path, *, baseline: bool) -> None:
        """`baseline`: score the shipped baseline too; `rolling_path` is where the challenger's corrections are kept."""
        self.challenger: ShadowModel | None = None
        self.error = ""
        self._registry = Registry(models_dir)
        self._rolling_path = rolling_path
        self._baseline = _baseline() if baseline else None
        self._tried: tuple[Path, int] | None = None
        self.refresh()

    @property
    def hash(self) -> str:
        """The challenger's hash, "" where there is none."""
        return "" if self.challenger is None else self.challenger.bundle.hash

    def refresh(self) -> bool:
        """Load the challenger if it is another one than at the last try; returns whether that changed anything."""
        try:
            found = self._registry.challenger()
            tried = None if found is None else (found.resolve(), (found / "manifest.json").stat().st_mtime_ns)
            if tried == self._tried:
                return False
            self._tried = tried
            bundle = None if found is None else load_bundle(found)
        except (GpuwasteError, OSError) as error:
            return self._failed(str(error))
        changed, self.error = (bundle is not None or self.challenger is not None), ""
        self._use(bundle)
        return changed

    def models(self, champion: str) -> tuple[ShadowModel, ...]:
        """Return what is scored beside the champion, by its hash: never the champion itself."""
        found = (self.challenger, self._baseline)
        return tuple(model for model in found if model is not None and model.bundle.hash != champion)

    def follow(self, follower: Follower) -> None:
        """Have the challenger learn from a history from now on."""
        learns = None if self.challenger is None else BundleCorrections(self.challenger.bundle, self.challenger.rolling)
        follower.correct_beside(learns, self.hash)

    def save(self) -> None:
        """Keep the challenger's corrections for the next start, and for the day of its promotion. Raises StoreError."""
        if self.challenger is not None:
            self.challenger.rolling.save(self._rolling_path)

    def _use(self, bundle: Bundle | None) -> None:
        if bundle is None:
            self.challenger = None
            return
        self.challenger = ShadowModel(bundle, corrections_of(bundle, self._rolling_path))
        _ON_TRIAL.log(name=bundle.manifest.name, hash=bundle.hash[:12])

    def _failed(self, words: str) -> bool:
        if words != self.error:
            _NOT_LOADED.log(error=words)
        self.error = words
        had, self.challenger = self.challenger is not None, None
        return had


def _baseline() -> ShadowModel:
    bundle = load_bundle(BASELINE)
    return ShadowModel(bundle, corrections_of(bundle))
