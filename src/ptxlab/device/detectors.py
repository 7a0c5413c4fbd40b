"""The detectors, by the codes of what they find. The command line reads it, too: it imports nothing."""

DETECTORS = frozenset(
    (
        "data-race",
        "lockstep-dependence",
        "unordered-collective",
        "missing-proxy-fence",
        "missing-tensor-fence",
        "mismatched-descriptor",
        "one-sided-synchronization",
        "stale-phase",
        "unread-accumulators",
        "undefined-shuffle",
        "uninitialized-read",
    )
)
"""What is checked while a kernel runs and can be left out; what stops a kernel is always reported."""
