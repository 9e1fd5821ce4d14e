"""What a program's run time does when its calls take longer: delayed on purpose, class by class."""
