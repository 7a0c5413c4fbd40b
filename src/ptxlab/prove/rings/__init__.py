"""What mbarriers, barriers and waits order, for any number of turns."""
