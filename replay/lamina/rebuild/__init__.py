"""Views made again beside the live ones, from the log or from the ledger, and switched while readers go on."""
