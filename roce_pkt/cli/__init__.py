"""The command: one file per verb, arguments and files only."""
