"""Attacks on proofs: problems aimed at every branch of every bound, exact spans, mutants of the code."""
