"""Published schedules, one family per file: each turns a problem into the order drawn in its paper."""
