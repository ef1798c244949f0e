"""L2: the situations that atoms belong to, in files that a person can read and correct."""
