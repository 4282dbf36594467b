"""The tables under attack: real people, generated ratings, two hospitals, k-anonymous releases."""
