"""Run the command line: `python -m llamapool`."""

from llamapool.cli import main

main()
