"""CP-SAT model of partitions: layers of each stage, recomputed ones, and lower bounds on the objective as rows."""
