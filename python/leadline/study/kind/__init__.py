"""What a kind of work is, as study and plan ask it: its face, and what options and jobs have in common."""
