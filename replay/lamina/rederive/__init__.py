"""Second thoughts: derive again by other means, beside what stands; compare, adopt or drop."""
