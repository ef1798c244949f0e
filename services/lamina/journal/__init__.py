"""L0: every event in the ledger `log/`, its blobs in `blobs/`, and the index that keyword recall reads."""
