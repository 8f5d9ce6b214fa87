"""The project folder: model, options, trained weights, and the record of projects that this user trusts."""
