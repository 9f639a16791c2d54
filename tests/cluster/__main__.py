"""Runs the command line."""

from tests.cluster.cli import main

main()
