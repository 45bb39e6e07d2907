"""Lowering of schedules to send and receive operations, with a proof of freedom from deadlock."""
