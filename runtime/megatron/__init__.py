"""Executor of a schedule's order inside Megatron-Core: sources of the module that `export --format megatron` writes.

They import nothing of this project but each other, so that the module needs nothing but Megatron-Core.
"""
