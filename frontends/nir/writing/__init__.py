"""Write graphs as NIR files."""
