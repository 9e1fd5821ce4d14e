"""Workers are forked by a helper that has loaded Python already: a trial does not wait for an interpreter."""
