"""Kernels written by hand in Triton: what a person who knows the machine gets, as a peer."""
