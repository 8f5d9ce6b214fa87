"""Arrays that users pass in files."""
