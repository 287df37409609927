"""The parser network: words to vectors, label attention, scores, and decoding them into trees."""
