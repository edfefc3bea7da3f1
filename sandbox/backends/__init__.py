"""The programs that sandbox, behind one interface (`choice.py`), with the system call filter that all of them use."""
