"""The search at task level, for problems whose passes are several tasks on several streams."""
