"""What has to be tried to be known: whether packets of full size pass, and how long they take."""
