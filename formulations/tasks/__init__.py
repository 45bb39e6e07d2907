"""Models of problems whose passes are several tasks on several streams: orders of tasks instead of orders of passes."""
