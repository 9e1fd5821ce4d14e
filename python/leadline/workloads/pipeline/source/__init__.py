"""What a pipeline begins with: a film that is made, a file that is served."""
