"""Events that a service could not take: looked at, tried again, or let rest with a reason."""
