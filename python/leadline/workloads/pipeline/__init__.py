"""Stages over one source, as a media platform goes through them."""
