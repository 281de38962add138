"""The model in use: the bundle that the registry's link `champion` names, loaded again when the link moves."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuwaste.advice.predict.beside import corrections_of
from gpuwaste.advice.predict.bundle import Bundle, load_bundle
from gpuwaste.advice.predict.corrections import BundleCorrections
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.registry import Registry
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.history.follow import Follower

if TYPE_CHECKING:
    from gpuwaste.advice.predict.rolling import Rolling

_OTHER_RULE: Final = log_event.warning(
    "model-under-use: {note}",
    "The model stays in use. `gpuwaste train` makes one whose GPU labels follow the site's rule.",
)
_NO_MODEL: Final = log_event.info("no-model: no model loaded; using job history only")
_MODEL: Final = log_event.info("model-loaded: model loaded: {name} {hash}")
_NOT_LOADED: Final = log_event.warning(
    "champion-not-loaded: cannot load the champion, {hash} stays in use: {error}",
    "The bundle is broken, has other features, or is writable by others: `gpuwaste model show`, "
    "`gpuwaste model rollback`.",
)


class Champion:
    """The bundle in use, None before there is one; what cannot be loaded leaves the one before in its place."""

    def __init__(self, models_dir: Path, rolling_path: Path, *others: Path) -> None:
        """`rolling_path` is where the corrections are kept; `others` may have those of a bundle that was on trial."""
        self.bundle: Bundle | None = None
        self.rolling: Rolling | None = None
        self.corrections: BundleCorrections | None = None
        self.error = ""
        self.note = ""  # in what the bundle differs from the site's settings
        self._rolling_path, self._others = rolling_path, others
        self._registry = Registry(models_dir)
        self._tried: tuple[Path, int] | None = None
        self.refresh()

    @property
    def hash(self) -> str:
        """The bundle's hash, "" where there is none."""
        return "" if self.bundle is None else self.bundle.hash

    def refresh(self) -> bool:
        """Load the champion if it is another one than at the last try; returns whether another one is in use now."""
        try:
            found = self._registry.champion()
            tried = None if found is None else (found.resolve(), (found / "manifest.json").stat().st_mtime_ns)
            if tried == self._tried:
                return False
            self._tried = tried
            bundle = None if found is None else load_bundle(found)
        except (GpuwasteError, OSError) as error:
            return self._failed(str(error))
        self._use(bundle)
        return True

    def predictor(self, follower: Follower) -> Predictor:
        """Return what predicts from a history, which learns for this bundle from now on; warns where they differ."""
        follower.correct_by(self.corrections, self.hash)
        note = "" if self.bundle is None else self.bundle.rule_note(follower.state.under_use)
        if note and note != self.note:
            _OTHER_RULE.log(note=note)
        self.note = note
        return Predictor(self.bundle, follower.state, self.rolling, follower.recall)

    def save(self) -> None:
        """Keep the rolling corrections for the next start. Raises StoreError."""
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
