"""A space as one file: written while it is in use, restored elsewhere or under another name."""
