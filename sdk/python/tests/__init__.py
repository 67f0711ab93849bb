"""Tests of the package hookloop. They need neither an engine nor a cluster."""
