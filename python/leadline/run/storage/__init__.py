"""Where a run works on a target: the marked directory, made and removed by paths or by a library."""
