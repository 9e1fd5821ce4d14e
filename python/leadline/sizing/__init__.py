"""What to build for what is asked: designs of clusters from hardware, models and measured figures."""
