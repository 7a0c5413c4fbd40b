"""The steps of a schedule, a file each: what it takes, what it refuses, and what it makes of the state."""
