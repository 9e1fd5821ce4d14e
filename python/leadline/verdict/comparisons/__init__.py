"""What was measured against what else was: targets, jobs, hosts, results, blocks, a baseline."""
