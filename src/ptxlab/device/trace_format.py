"""Numbers in the chunks of a recorded launch, for the emulator that writes them and `trace` that reads them."""

# What a segment does to the stack of calls.
ENTERS = 1
LEAVES = 2

SEGMENT_BITS = 24  # of an entry: the number of its segment; above them is the thread, counted through the grid

# Kinds of events.
ISSUED = 1  # an asynchronous operation was started
READ = 2  # it has read bytes
WRITTEN = 3  # it has written bytes, which are in the data
INITIALIZED = 4  # an mbarrier: `size` arrivals are expected in each phase
ARRIVED = 5  # at an mbarrier: `size` arrivals; `offset` are still missing
EXPECTED = 6  # by an mbarrier: `size` more bytes
COMPLETED = 7  # on an mbarrier: `size` bytes
PHASE = 8  # of an mbarrier: phase `operation` is complete
OBSERVED = 9  # a wait on an mbarrier is over: phase `operation` was complete
AT_BARRIER = 10  # a thread has arrived at barrier `operation` of its block
OPENED = 11  # barrier `operation` of a block is complete
GROUP_WAITED = 12  # a thread has waited for asynchronous groups
TURN = 13  # of launches that run together: what follows is in turn `address` of all of them

NO_BLOCK = 0xFFFFFFFFFFFFFFFF  # the block of an event in global memory
