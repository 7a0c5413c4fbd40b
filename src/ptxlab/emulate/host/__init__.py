"""One launch: its memory, its workers, the services it asks the host for."""
