"""Episodes of tasks on leased sessions: what the Gymnasium environments and the trainer adapters share."""
