"""Problems that submissions are graded by, one file each: `task = Task(...)`."""
