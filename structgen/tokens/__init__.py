"""Tokens as bytes: vocabularies and their tries."""
