"""Where traces come from: our own tracers, and the logs of others. Each source gives the same tables."""
