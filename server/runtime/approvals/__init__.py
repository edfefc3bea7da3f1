"""Whether a call needs a person's word, what is shown, and what is remembered of the answer; who is asked, and how, is a face's."""
