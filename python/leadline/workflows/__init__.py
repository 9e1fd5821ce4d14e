"""What a media platform noted of its own workflows: read, stored, judged."""
