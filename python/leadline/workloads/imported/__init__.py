"""What another program measured, with nothing of ours beside it: never planned or run, only judged."""
