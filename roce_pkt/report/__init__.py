"""How results are shown; computes nothing."""
