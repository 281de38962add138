"""The bundles that score submissions: the champion, loaded again when its link moves, and those on trial.

On trial are the challenger, and the baseline as a yardstick: they are scored but change no advice.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from gpuwaste.advice.predict.bundle import BASELINE, Bundle, Registry, load_bundle
from gpuwaste.advice.predict.corrections import BundleCorrections, corrections_of
from gpuwaste.advice.predict.onnx_session import Vectors
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.history.history_follower import Follower

_OTHER_RULE: Final = log_event.warning(
    "model-under-use: {note}",
    "The model stays in use. `gpuwaste model train` makes one whose GPU labels follow the site's rule.",
)
_NO_MODEL: Final = log_event.info("no-model: no model loaded; using job history only")
_MODEL: Final = log_event.info("model-loaded: model loaded: {name} {hash}")
_NOT_LOADED: Final = log_event.warning(
    "champion-not-loaded: cannot load the champion, {hash} stays in use: {error}",
    "The bundle is damaged, has other features, or is writable by others: `gpuwaste model show`, "
    "`gpuwaste model rollback`.",
)
_ON_TRIAL: Final = log_event.info("challenger-loaded: model on trial: {name} {hash}")
_TRIAL_NOT_LOADED: Final = log_event.warning(
    "challenger-not-loaded: cannot load the model on trial: {error}",
    "The bundle is damaged, has other features, or is writable by others. `gpuwaste model trial --end` ends the trial.",
)


class Champion:
    """The bundle in use, None before there is one; if a bundle cannot be loaded, the previous one stays in use."""

    def __init__(self, models_dir: Path, rolling_path: Path, *others: Path) -> None:
        """`rolling_path` is the file of the corrections; `others` may have those of a bundle that was on trial."""
        self.bundle: Bundle | None = None
        self.rolling: Rolling | None = None
        self.corrections: BundleCorrections | None = None
        self.error = ""
        self.note = ""  # in what the bundle differs from the site's settings
        self._rolling_path, self._others = rolling_path, others
        self._link = _FollowedLink(Registry(models_dir).champion)
        self.refresh()

    @property
    def hash(self) -> str:
        """The bundle's hash, "" where there is none."""
        return "" if self.bundle is None else self.bundle.hash

    def refresh(self) -> bool:
        """Load the champion if it changed since the last try; return whether another one is in use now."""
        try:
            news = self._link.news()
        except (GpuwasteError, OSError) as error:
            return self._failed(str(error))
        if news is None:
            return False
        self._use(*news)
        return True

    def predictor(self, follower: Follower) -> Predictor:
        """Return the predictor of a history, which corrects this bundle from now on; warn if their rules differ."""
        follower.correct_by(self.corrections, self.hash)
        note = "" if self.bundle is None else self.bundle.rule_note(follower.state.under_use)
        if note and note != self.note:
            _OTHER_RULE.log(note=note)
        self.note = note
        return Predictor(self.bundle, follower.state, self.rolling, follower.recall)

    def save(self) -> None:
        """Save the rolling corrections for the next start. Raises StoreError."""
        if self.rolling is not None:
            self.rolling.save(self._rolling_path)

    def _use(self, bundle: Bundle | None) -> None:
        self.bundle, self.error, self.rolling, self.corrections = bundle, "", None, None
        if bundle is None:
            _NO_MODEL.log()
            return
        self.rolling = corrections_of(bundle, self._rolling_path, *self._others)
        self.corrections = BundleCorrections(bundle, self.rolling)
        _MODEL.log(name=bundle.manifest.name, hash=bundle.hash[:12])

    def _failed(self, words: str) -> bool:
        if words != self.error:
            _NOT_LOADED.log(hash=self.hash[:12] or "no model", error=words)
        self.error = words
        return False


class _FollowedLink:
    """A link of the registry; its bundle is loaded when the link changes."""

    def __init__(self, target: Callable[[], Path | None]) -> None:
        self._target = target
        self._tried: tuple[Path, int] | None = None

    def news(self) -> tuple[Bundle | None] | None:
        """Return the linked bundle if it is another one than at the last try. Raises GpuwasteError, OSError."""
        found = self._target()
        tried = None if found is None else (found.resolve(), (found / "manifest.json").stat().st_mtime_ns)
        if tried == self._tried:
            return None
        self._tried = tried
        return (None if found is None else load_bundle(found),)


class ShadowModel:
    """A bundle with its corrections, used only for probabilities."""

    def __init__(self, bundle: Bundle, rolling: Rolling) -> None:
        self.bundle = bundle
        self.rolling = rolling
        self._targets = frozenset(model.target for model in bundle.manifest.targets if not model.quantiles)

    def probabilities(self, vectors: Vectors, wanted: Collection[str]) -> dict[str, list[float]]:
        """Return, for each wanted target of the bundle, the probability of each vector [n, F]. Raises ModelError."""
        return {
            target: [self.rolling.probability(target, float(raw)) for raw in self.bundle.raw(target, vectors)[:, 0]]
            for target in sorted(self._targets & frozenset(wanted))
        }


class ModelTrial:
    """Follows the registry's link `challenger`; a bundle that cannot be loaded is not scored."""

    def __init__(self, models_dir: Path, rolling_path: Path, *, baseline: bool) -> None:
        """`baseline`: score the shipped baseline too; `rolling_path` is the file of the challenger's corrections."""
        self.challenger: ShadowModel | None = None
        self.error = ""
        self._link = _FollowedLink(Registry(models_dir).challenger)
        self._rolling_path = rolling_path
        self._baseline = _baseline() if baseline else None
        self.refresh()

    @property
    def hash(self) -> str:
        """The challenger's hash, "" where there is none."""
        return "" if self.challenger is None else self.challenger.bundle.hash

    def refresh(self) -> bool:
        """Load the challenger if it changed since the last try; return whether that changed anything."""
        try:
            news = self._link.news()
        except (GpuwasteError, OSError) as error:
            return self._failed(str(error))
        if news is None:
            return False
        (bundle,) = news
        changed, self.error = (bundle is not None or self.challenger is not None), ""
        self._use(bundle)
        return changed

    def models(self, champion: str) -> tuple[ShadowModel, ...]:
        """Return the models scored in addition to the champion, by hash: never the champion itself."""
        found = (self.challenger, self._baseline)
        return tuple(model for model in found if model is not None and model.bundle.hash != champion)

    def follow(self, follower: Follower) -> None:
        """Correct the challenger by a history from now on."""
        learns = None if self.challenger is None else BundleCorrections(self.challenger.bundle, self.challenger.rolling)
        follower.correct_beside(learns, self.hash)

    def save(self) -> None:
        """Save the challenger's corrections for the next start, and for its promotion. Raises StoreError."""
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
            _TRIAL_NOT_LOADED.log(error=words)
        self.error = words
        had, self.challenger = self.challenger is not None, None
        return had


def _baseline() -> ShadowModel:
    bundle = load_bundle(BASELINE)
    return ShadowModel(bundle, corrections_of(bundle))
