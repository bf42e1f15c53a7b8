"""``rlgov train``: a policy from a population of jobs on twins."""

from __future__ import annotations

from rlgov.cli.command import SEED, Command, Key, later

# As in rlgov.training.config and rlgov.reward, which the help must not import; a test compares.
OBJECTIVE_CHOICES = ("any", "energy", "edp", "ed2p", "power_cap")

COMMAND = Command(
    name="train",
    summary="train a policy on twins: rlgov train board=jetson_agx_orin_64gb",
    help="""
    Trains one policy for every objective, budget and set of knobs over a population of jobs on
    twins of a board: first what to believe about a job at sight (the cost of every setting, which
    twins know), then PPO on top of that belief, behind the guard. The best policy on the validation
    jobs becomes a bundle (weights and a card) in out=DIR/bundle, which policy=DIR/bundle then
    names. The same settings and seed give the same bundle bit for bit.

    TensorBoard's files go to out=DIR/tensorboard.
    """,
    examples=(
        ("rlgov train board=jetson_agx_orin_64gb out=runs/orin", "the packaged bundle, anew"),
        ("rlgov train -m seed=1,2,3 out=runs/seeds", "three seeds, one table"),
        ("rlgov train agent=tiny", "see that everything works, in seconds"),
    ),
    config="train",
    run=later("rlgov.cli.train_run:run"),
    keys={
        "job": Key(kind="path"),
        "objective": Key(choices=OBJECTIVE_CHOICES),
        "seed": SEED,
        "torch_threads": Key(minimum=1),
    },
    sweep_columns=("score", "best_at", "wall_s"),
)
