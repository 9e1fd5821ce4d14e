"""An unchanged program as a work, copies of it at once."""
