"""How `leadline tune search` conducts a search: what is asked, what comes next, the proof of its winner."""
