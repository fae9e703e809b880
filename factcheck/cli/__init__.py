"""One module per command: argument parsing and printing only."""
