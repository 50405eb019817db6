"""One module a command: arguments in, data on standard output, exit status out."""
