"""A person's word before a call: questions, what an answer means, and what is remembered of it."""
