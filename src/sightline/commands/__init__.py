"""The commands, one file each: options in, library calls, words and data out."""
