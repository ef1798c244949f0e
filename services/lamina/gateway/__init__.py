"""The HTTP face of a home."""
