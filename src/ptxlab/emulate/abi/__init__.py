"""The structures that machine code and host share: threads, blocks, clusters, workers, faults, findings."""
