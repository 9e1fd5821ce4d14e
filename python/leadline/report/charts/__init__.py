"""Charts as Vega-Lite values, a kind a file."""
