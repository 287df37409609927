"""The network: encoder, label attention layer, scorers, and their assembly."""
