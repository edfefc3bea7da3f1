"""Code actions: fixes of findings and refactorings."""
