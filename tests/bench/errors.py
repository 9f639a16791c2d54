"""What the benchmark raises when it cannot go on."""


class BenchError(Exception):
    """Something the user can act on: the message says what failed, where its log is, what would be right."""
