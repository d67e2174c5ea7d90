"""attnscope: what a pretrained transformer attends to, shown in the terminal and proved.

Importing this package loads nothing heavy: torch, transformers, matplotlib and scikit-learn each sit
behind one door (see docs/design.md) and are imported by the modules that need them.
"""

__version__ = "0.1.0"
