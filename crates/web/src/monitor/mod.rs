//! A run as it happens: the board's cells, counts and rates, pushed to whoever looks. Nothing in the run waits for it.
