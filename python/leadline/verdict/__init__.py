"""What tables allow one to say: validity, comparisons, sentences."""
