"""The log, the ledger and the views held against one another: what differs, and what heals it."""
