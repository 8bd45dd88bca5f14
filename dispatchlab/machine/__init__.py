"""The machine below the measurement: what it is, how to make it repeatable, and how to put it back."""
