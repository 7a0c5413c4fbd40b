"""Which thread runs next: lanes, warps, blocks, clusters, barriers, and schedules with a seed."""
