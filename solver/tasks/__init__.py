"""Search at task level, for problems whose passes consist of several tasks on several streams."""
