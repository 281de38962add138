"""Who may preempt whom: PreemptType and PreemptMode of slurm.conf, by partitions or QOS."""

from typing import Final

import numpy as np

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.slurm.board import Flags, Ints
from gpuwaste.sim.slurm.settings import lowered
from gpuwaste.slurm.site.cluster_model import ClusterModel

_TYPES: Final = {"": "", "preempt/none": "", "none": "", "(null)": ""} | {
    name: name for name in ("preempt/qos", "preempt/partition_prio")
}
_REQUEUE: Final = "requeue"
_CANCEL: Final = "cancel"


def preemption(model: ClusterModel, kinds: Ints) -> tuple[Flags, Ints]:
    """Return which kind may preempt which [G, G], and of each as a victim [G, 3]: its rank, whether it is requeued, 0.

    `kinds` [G, 2] are partition and QOS by their places in the model, QOS -1 for none. Raises ConfigError for another
    PreemptType.
    """
    settings = lowered(model.settings)
    text = settings.get("preempttype", "").lower()
    if text not in _TYPES:
        raise ConfigError(
            f"PreemptType={text[:40]!r}: expected preempt/none, preempt/partition_prio or preempt/qos;"
            " correct it in slurm.conf or the machine file"
        )
    words = {word.strip() for word in settings.get("preemptmode", "off").lower().split(",")}
    general = next((mode for mode in (_CANCEL, _REQUEUE) if mode in words), "off")
    by_qos, modes, ranks = _TYPES[text] == "preempt/qos", [], []
    for partition, qos in kinds.tolist():
        part = model.partitions[partition]
        own = (model.qos[qos].preempt_mode if qos >= 0 else None) if by_qos else part.preempt_mode
        modes.append(general if own is None else own)
        ranks.append((model.qos[qos].priority if qos >= 0 else 0) if by_qos else part.priority_tier)
    found = np.zeros((len(kinds), len(kinds)), np.bool_)
    for first, (partition, qos) in enumerate(kinds.tolist()):
        for second, (other, victim) in enumerate(kinds.tolist()):
            if not _TYPES[text] or modes[second] == "off":
                continue
            if by_qos:
                may = qos >= 0 and victim >= 0 and model.qos[victim].name in model.qos[qos].preempts
            else:
                may = model.partitions[partition].priority_tier > model.partitions[other].priority_tier
            found[first, second] = may
    victims = np.array([ranks, [mode == _REQUEUE for mode in modes], [0] * len(kinds)], np.int64).T.copy()
    return found, victims.reshape(len(kinds), 3)
