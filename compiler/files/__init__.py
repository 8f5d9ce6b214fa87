"""Files and folders: temporary, cached, owned by this user, replaced whole."""
