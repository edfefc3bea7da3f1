"""What a tool asks for, what the policy grants, and where that leads on disk."""
