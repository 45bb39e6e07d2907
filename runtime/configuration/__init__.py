"""What generated modules set in the configuration of a trainer, shared by exports of orders and of partitions."""
