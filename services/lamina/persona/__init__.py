"""L3: who somebody is and how they want things done, each line with its source."""
