"""How well and how fast a memory answers, asked of itself: the verb `bench`."""
