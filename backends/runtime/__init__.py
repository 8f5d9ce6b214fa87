"""The engine protocol that every backend implements, and the inputs, weights and predictions of sessions."""
