"""Verbs that say what does not stand yet: sizes and simulations."""
