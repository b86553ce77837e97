"""`sightline serve`: the abilities of the command line behind HTTP."""
