"""The verb `replay`: what the log makes possible, from the command line."""
