"""Offloading: every tool result as a readable reference, and the canvas of each session's work."""
