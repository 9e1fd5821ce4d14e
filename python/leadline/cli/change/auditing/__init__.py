"""`leadline tune audit`: what it is for, how hosts are asked, and what is printed."""
