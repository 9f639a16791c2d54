"""Rounds as a test needs them."""

from collections.abc import Mapping, Sequence

from tests.bench.measurements import Batch, Round, Timed

MEMCPY_BYTES_PER_SECOND = 1000.0
CHECKPOINT_BYTES = 10  # one memcpy takes 10 ms


def batch(
    ttft_seconds: Sequence[float],
    *,
    checkpoint_seconds: Sequence[float] = (),
    save_seconds: Sequence[float] = (),
    wall_seconds: float = 1.0,
    turns: int = 1,
    page_faults: int = 0,
) -> Batch:
    return Batch(
        ttft_seconds=tuple(ttft_seconds),
        turns=turns,
        wall_seconds=wall_seconds,
        checkpoints=tuple(Timed(size_bytes=CHECKPOINT_BYTES, seconds=each) for each in checkpoint_seconds),
        saves=tuple(Timed(size_bytes=CHECKPOINT_BYTES, seconds=each) for each in save_seconds),
        page_faults=page_faults,
        peak_rss_bytes=1,
        histogram=None,
    )


def a_round(batches: Mapping[str, Batch]) -> Round:
    return Round(batches=batches, memcpy_bytes_per_second=MEMCPY_BYTES_PER_SECOND)
