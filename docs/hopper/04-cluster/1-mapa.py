"""A cluster: the variable of another block."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
The four blocks of a cluster add their numbers to a variable in the shared memory of the first block.
`atom.shared::cluster` can reach it, but the address is the one of each block's own. Mend it.
"""


def launch(random: np.random.Generator, clusters: int) -> Case:
    """Clusters of four blocks of 128."""
    x = random.integers(0, 1000, 512 * clusters).astype(np.uint32)
    y = np.zeros(clusters, np.uint32)
    own = x.reshape(clusters, 4, 128)[:, 0].sum(1, dtype=np.uint32)
    return Case(
        4 * clusters, 128, {"x": x, "y": y}, expected={"y": x.reshape(clusters, 512).sum(1, dtype=np.uint32)},
        mistakes={"this is the sum of the first block only: the others add to a variable of their own": {"y": own}},
    )  # fmt: skip


EXERCISE = Exercise(
    "the variable of another block",
    commented(WORDS, changed(KERNEL, ("mapa.shared::cluster.u32 %there, %r4, 0;", "mov.u32 %there, %r4;"))),
    commented(WORDS, KERNEL),
    Task("sum", launch, ({"clusters": 2}, {"clusters": 1})),
    hints=(
        "An address of `.shared::cluster` says which block it is in. The address of a variable is the one in the "
        "own block.",
        "`mapa` makes of it the address of the same variable in another block of the cluster, by its rank.",
        "`mapa.shared::cluster.u32 %there, %r4, 0;`",
    ),
    advice={
        "data-race": "The barriers of the cluster must stay: before the additions, and before the sum is read.",
        "wrong-values": "Which block's variable does each block add to?",
    },
)
