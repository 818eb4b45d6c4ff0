"""Benchmarks: contenders on the same input in one process, interleaved, warm-up left out, medians with their spread."""
