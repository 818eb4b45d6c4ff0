"""Studies of the planners: the figures of the papers, measured on ours."""
