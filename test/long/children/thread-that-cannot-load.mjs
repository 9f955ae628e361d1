// Instead of the heartbeat thread's file.
throw new Error("cannot be loaded");
