"""The validator: the rules of a schedule stated independently of solver and simulator."""
