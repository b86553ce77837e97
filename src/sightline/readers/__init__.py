"""Readers: one file per source of documents, each with a function that yields `Document`."""
