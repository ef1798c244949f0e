"""Which texts want a vector. The embed loop of the runtime makes them; the query service compares them."""
