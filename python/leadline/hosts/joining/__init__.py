"""How each part of a trial on many hosts is made of theirs: times, summary, row, histograms, samples."""
