"""The report of a reproduction: its figures and one page that shows it all."""
