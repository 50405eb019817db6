"""The tuner: which knobs make a kernel fastest on this machine, found by measuring."""
