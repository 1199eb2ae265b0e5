"""Layer 1: Pydantic types become schema nodes."""
