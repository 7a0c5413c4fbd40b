"""Many launches of one kernel: under several seeds, on several machines, or under every schedule that differs."""
