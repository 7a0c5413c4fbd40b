"""Names of special registers, until the instruction set has them as data."""

from __future__ import annotations

import re

_SPECIAL = re.compile(
    r"%(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|lanemask_(?:eq|le|lt|ge|gt)|clock(?:64|_hi)?"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|0|1)|total_smem_size|aggr_smem_size"
    r"|dynamic_smem_size|current_graph_exec|envreg(?:[0-9]|[12][0-9]|3[01])|pm[0-7](?:_64)?)"
)


def is_special_register(name: str) -> bool:
    """Whether `name` is predefined."""
    return _SPECIAL.fullmatch(name) is not None
