"""Problems that are another one with less to keep: what is proved of them holds of it."""
