"""Results that other programs wrote: read as foreign text, and made into results of ours."""
