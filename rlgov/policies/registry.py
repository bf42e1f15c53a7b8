"""Policies by name, and from a path."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rlgov.boards.base import Knob
from rlgov.errors import ConfigError
from rlgov.policies import bandit, baselines, bayes, bundle, selector
from rlgov.policies.base import Policy, PolicyContext
from rlgov.work import FloatArray

Maker = Callable[[PolicyContext, Mapping[str, object]], Policy]

POLICIES: dict[str, Maker] = {
    "ppo": bundle.packaged,
    "as_found": baselines.as_found,
    "max": baselines.pinned_max,
    "fixed": baselines.fixed,
    "random": baselines.random_settings,
    "util30": selector.util30,
    "ucb": bandit.ucb,
    "bayes": bayes.bayes,
    "gpu_oracle": baselines.gpu_oracle,
    "oracle": baselines.oracle,
}
"""Name -> what builds it; a new policy registers here."""


POWER_MODE = "nvpmodel"
"""``nvpmodel:<mode>`` is a policy for every power mode of the board."""


def load_policy(
    name_or_path: str,
    knobs: Sequence[Knob],
    *,
    board: str | None = None,
    seed: int = 0,
    args: Mapping[str, object] | None = None,
    best: Callable[[], FloatArray] | None = None,
    modes: Mapping[str, Mapping[str, float | None]] | None = None,
) -> Policy:
    """The policy called ``name_or_path``, or the bundle in that folder.

    Args:
        name_or_path: A name of `POLICIES`, or a folder (anything with a slash, or that exists).
        knobs: Of the board that it is going to act on.
        board: That board's name.
        seed: See `PolicyContext`.
        args: Arguments of this policy (``policy_args.<name>``).
        best: See `PolicyContext`.
        modes: See `PolicyContext`.

    Raises:
        ConfigError: No such policy or folder, or arguments that it does not take.
        PolicyError: A bundle that is damaged or does not fit the board.
    """
    return make_policy(
        name_or_path, PolicyContext(knobs, board, seed, best, None, modes or {}), args
    )


def make_policy(
    name_or_path: str, context: PolicyContext, args: Mapping[str, object] | None = None
) -> Policy:
    """As `load_policy`, from a `PolicyContext`.

    Raises:
        ConfigError: No such policy or folder, or arguments that it does not take.
        PolicyError: A bundle that is damaged or does not fit the board.
    """
    if name_or_path in POLICIES:
        return POLICIES[name_or_path](context, args or {})
    baselines.no_arguments(name_or_path, args or {})
    family, _, mode = name_or_path.partition(":")
    if family == POWER_MODE:
        return baselines.power_mode(context, mode)
    folder = bundle_folder(name_or_path)
    if folder is None:
        close = difflib.get_close_matches(name_or_path, POLICIES, n=1)
        hint = f"; did you mean {close[0]}?" if close else ";"
        raise ConfigError(
            f"there is no policy {name_or_path!r}{hint} policies are {', '.join(POLICIES)}, "
            f"{POWER_MODE}:MODE, or the folder of a bundle"
        )
    return bundle.BundlePolicy(bundle.Bundle.load(folder), context.knobs, name_or_path)


def bundle_folder(name_or_path: str) -> Path | None:
    """The folder that ``name_or_path`` means; ``None`` when it is a plain word.

    A run folder of ``rlgov train`` stands for the bundle inside it.

    Raises:
        ConfigError: A path that is no folder.
    """
    if not name_or_path.strip():
        return None
    path = Path(name_or_path).expanduser()
    if len(path.parts) < 2 and not path.is_dir():
        return None
    if not path.is_dir():
        raise ConfigError(f"policy={name_or_path}: there is no such folder")
    inner = path / "bundle"
    return inner if (inner / bundle.CARD_FILE).is_file() else path
