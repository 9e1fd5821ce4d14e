"""The real fio in the place of our engine: the planned job as a job file, its output as a trial of ours."""
