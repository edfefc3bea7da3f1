"""What can be run or written in another form, and what came of it."""
