"""Front ends: model files, PyTorch modules and networks written in Python become graphs."""
