"""The validator: the rules of schedules, stated independently of solver and simulator."""
