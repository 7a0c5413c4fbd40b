"""Run PTX without a GPU: exact arithmetic, races and hangs explained."""
