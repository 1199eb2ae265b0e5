"""structgen in other people's loops: one file or folder per library."""
