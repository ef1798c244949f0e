"""The query service: answers every read from the materialised views, and says what it could not look at."""
