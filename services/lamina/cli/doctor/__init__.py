"""The verb `doctor`: looks for real trouble and says what to do about it."""
