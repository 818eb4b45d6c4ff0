"""What a user writes: a flow of streams, keyed operators and sinks. Nothing here runs; `spark` does."""
