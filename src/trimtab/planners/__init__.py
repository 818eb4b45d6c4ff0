"""Planners: pure functions from a snapshot of slots, lanes and traffic to a lane for every slot. Free of any engine."""
