"""Why a cell is not faster: what its trials saw, the causes that explain it, and what could not be told."""
