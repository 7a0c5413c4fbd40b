"""What is asked: of which pairs of accesses, to which memory, under which assumptions."""
