"""Pictures of a plan and the data behind them, one picture a file."""
