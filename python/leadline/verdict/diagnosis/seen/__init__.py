"""From the tables of a trial to the one row of figures that causes are judged by, a part a file."""
