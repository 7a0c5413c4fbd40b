"""Whether a cluster makes progress, as the scheduler observes it; see `runtime.schedule.quiescence`."""

from __future__ import annotations

from ptxlab.native import struct, u32, u64


@struct
class Watch:
    """The state that a cluster was in some time ago, and what happened since."""

    changes: u64  # of memory, by all blocks, up to now
    near: u64  # polls of memory and mbarriers when the state was noted
    far: u64  # polls when the state was noted that other blocks can answer
    times: u64  # reads of a clock when the state was noted
    mark: u64  # a hash of the state
    least: u64  # of all marks since the state was noted
    cycle: u64  # the least mark of the cycle in which time made no difference
    quiet: u32  # rounds without a change
    age: u32  # rounds since the state was noted
    span: u32  # how many rounds there may be until another state is noted
    leaps: u32  # in time that made no difference
    is_still: u32  # whether the state has come again
    is_near: u32  # whether no other cluster can help
    is_timed: u32  # whether a clock may help
    unused: u32
