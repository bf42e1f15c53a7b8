"""Which GPUs ``CUDA_VISIBLE_DEVICES`` shows to the job: by index, UUID, prefix of one, or MIG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlgov.errors import ConfigError

_MIG = "MIG-"


@dataclass(frozen=True)
class Visible:
    """The GPUs that the job sees.

    Attributes:
        indices: Positions in NVML's order, in the job's order.
        mig: Names of MIG instances among them; their parents are not in ``indices``.
    """

    indices: tuple[int, ...]
    mig: tuple[str, ...] = ()


def visible_gpus(spec: str | None, uuids: Sequence[str]) -> Visible:
    """Resolve ``spec`` (``None``: not set, every GPU).

    Args:
        spec: Value of ``CUDA_VISIBLE_DEVICES``.
        uuids: UUID of every GPU, in NVML's order.

    Raises:
        ConfigError: A name that no GPU has, or that several have.
    """
    if spec is None:
        return Visible(tuple(range(len(uuids))))
    indices: list[int] = []
    mig: list[str] = []
    for word in (part.strip() for part in spec.split(",")):
        if word in ("", "-1", "NoDevFiles"):
            break  # as CUDA does: nothing after it is visible
        if word.startswith(_MIG):
            mig.append(word)
        else:
            indices.append(_index(word, uuids))
    return Visible(tuple(dict.fromkeys(indices)), tuple(mig))


def _index(word: str, uuids: Sequence[str]) -> int:
    if word.isdigit():
        if int(word) < len(uuids):
            return int(word)
        raise ConfigError(
            f"CUDA_VISIBLE_DEVICES names GPU {word}, but there are {len(uuids)} (from 0)"
        )
    found = [i for i, uuid in enumerate(uuids) if uuid.lower().startswith(word.lower())]
    if len(found) == 1:
        return found[0]
    problem = "several GPUs" if found else "no GPU"
    raise ConfigError(
        f"CUDA_VISIBLE_DEVICES={word} fits {problem}; there are: {', '.join(uuids) or 'none'}"
    )
