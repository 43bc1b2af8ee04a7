"""What a text is: an error, talk about one, somebody else's quoted words, an error that was handled."""
