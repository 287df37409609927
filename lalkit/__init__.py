"""lalkit: the Label Attention Layer parser, and the tools that look into it."""

__version__ = "0.1.0"
