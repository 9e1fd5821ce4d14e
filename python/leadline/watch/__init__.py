"""What goes on on a mount in production: collected, stored, judged, shown."""
