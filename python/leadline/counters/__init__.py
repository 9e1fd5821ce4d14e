"""What is observed of a trial and while it runs: a list as data, and what is made from it."""
