"""Sightline finds which sentence each image of a document belongs to."""

__version__ = "0.1.0"
