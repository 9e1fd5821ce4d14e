"""What the user asked for, as frozen values; reads text, touches no target."""
