"""The session and the engine protocol that every backend implements."""
