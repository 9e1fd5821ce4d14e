"""What a host of a study has by itself: its directory, the attempts that it made, the pipe to its session."""
