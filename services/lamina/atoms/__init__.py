"""L1: what is worth keeping of what was said, with its sources."""
