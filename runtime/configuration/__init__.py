"""Settings that generated modules make in a trainer's configuration, shared by exports of orders and of partitions."""
