"""Runs a schedule's order inside Megatron-Core: the sources of the one module that `export --format megatron` writes.

They import nothing of this project but each other, so that the module needs nothing but Megatron-Core.
"""
