"""The compiler: it turns graphs into step programs and plans, independently of file formats and vendors."""
