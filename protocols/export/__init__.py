"""Tool definitions in the forms that model providers and other hosts take, with what each form cannot hold."""
