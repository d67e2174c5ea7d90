"""The model cards: texts with places for measured figures."""
