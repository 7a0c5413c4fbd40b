"""What is to be shown of a kernel, a file for each kind."""
