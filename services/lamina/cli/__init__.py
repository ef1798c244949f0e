"""The command line: `lamina VERB`. Verbs are found through the entry-point group `lamina.commands`."""
