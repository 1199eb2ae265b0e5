"""Language models, masks on logits, sampling, and the one loop that decodes."""
