"""Estimate what a run would use before it is made, from a sample."""
