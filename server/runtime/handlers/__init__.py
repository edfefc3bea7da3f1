"""What runs a call, one folder for each type of handler; each has a runner."""
