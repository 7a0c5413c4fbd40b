"""Programs of several ranks in one process: torch, its symmetric memory and Triton on the GPUs of a node.

    with ptxlab.node(8).emulated() as ranks:
        ranks.run(main)  # on each rank, as torchrun has it, in a thread of its own

`turns.py` has the ranks take turns, `session.py` launches on the node, and `distributed.py` is what programs see of
`torch.distributed` and of symmetric memory.
"""

from ptxlab.frameworks.ranks.session import Ranks, emulated

__all__ = ["Ranks", "emulated"]
