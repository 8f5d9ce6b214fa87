"""Files and folders: temporary and cached files, ownership checks, and atomic replacement."""
