"""Measures structgen beside other engines on this machine; run by `structgen bench`."""
