"""The seeded training streams, and what never enters them."""
