"""State by operator and slot: segments, manifests, keyed tables, and the rules of committing them."""
