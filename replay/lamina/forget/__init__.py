"""Forgetting: what is erased on request is gone from the log, the ledger, every view and file, and stays gone."""
