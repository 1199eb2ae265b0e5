"""Layer 2: schema nodes become byte frames, and frames become a linked program."""
