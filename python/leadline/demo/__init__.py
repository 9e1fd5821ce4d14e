"""Programs to measure with: real ones, which know nothing of being measured."""
