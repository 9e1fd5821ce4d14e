"""Changes of settings, from what was asked to what is put back."""
