"""When the processes of a trace ended, and how, where they could not say so themselves."""
