"""What a run may use, held from outside: control groups where they can be written, and a watchdog for the rest."""
