"""Classification: which label, how sure, and what else it might have been."""
