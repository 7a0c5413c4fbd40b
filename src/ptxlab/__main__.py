"""`python -m ptxlab` is the command line."""

from ptxlab.cli import main

main()
