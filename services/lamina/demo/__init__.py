"""The verb `demo`: plays a bundled, self-written session through the real log and shows what was remembered."""
